-- The attempts of a webhook are a chain: each row has its place in it and a digest over itself and
-- the digest of the row before. Rows from before this migration have none; a chain starts after
-- them. `answer_digest` stands for the response of a row whose person was erased.
alter table attempts add column place bigint;
alter table attempts add column body_digest bytea;
alter table attempts add column digest bytea;
alter table attempts add column answer_digest bytea;

-- The end of the chain is in the lane, which whoever records an attempt has locked.
alter table lanes add column chain_place bigint not null default 0;
alter table lanes add column chain_digest text not null default '';

-- What retention deleted of a chain: places without a row, and the digest of the last of them. Runs
-- that meet become one.
create table chain_gaps (
  webhook_id text /*postgres collate "C"*/ not null,
  first_place bigint not null,
  last_place bigint not null,
  digest bytea not null,
  primary key (webhook_id, first_place)
) /*sqlite without rowid*/;

-- Where the chains of deleted webhooks end; a row goes when retention has deleted all attempts.
create table chain_ends (
  webhook_id text /*postgres collate "C"*/ primary key,
  place bigint not null,
  digest text not null
);

-- All attempts that started later are signed with the secret that is current now.
alter table webhooks add column secret_since bigint not null default 0;

-- Persons whose events are being erased: the records about them, and how far the search is.
create table erasures (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  record_ids text not null,
  kept_names text not null,
  upto_pos bigint not null,
  seq bigint not null,
  created_at bigint not null
);
