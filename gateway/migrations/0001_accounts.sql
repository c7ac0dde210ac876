-- People and what they prove themselves with. A user's id is the owner_id of all their records.

create table users (
  id text /*postgres collate "C"*/ primary key,
  email text not null,
  folded_email text /*postgres collate "C"*/ not null unique,
  name text not null,
  password_hash text not null,
  timezone text not null default 'America/Sao_Paulo',
  disabled_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null default 1
);

-- `digest` is the SHA-256 of the whole key; `visible` is the part that may be shown again.
create table api_keys (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null references users (id),
  name text not null,
  visible text not null,
  digest bytea not null unique,
  scopes text not null,
  expires_at bigint,
  last_used_at bigint,
  revoked_at bigint,
  created_at bigint not null
);
create index api_keys_owner on api_keys (owner_id, created_at desc, id desc);

create table tokens (
  digest bytea primary key,
  owner_id text /*postgres collate "C"*/ not null references users (id),
  created_at bigint not null,
  expires_at bigint not null
);
create index tokens_owner on tokens (owner_id);
create index tokens_old on tokens (expires_at);
