-- additive
-- Signed notes of where the chains of attempts of an owner ended, in the order of `number`: see
-- outbox.queue.proof.checkpoints. `ends` is a digest of these ends, and `first_webhook` the first of
-- their webhooks, by which the next run knows whether anything has changed.
create table checkpoints (
  owner_id text /*postgres collate "C"*/ not null,
  number bigint not null,
  created_at bigint not null,
  key_id text not null,
  webhooks bigint not null,
  first_webhook text /*postgres collate "C"*/ not null,
  ends bytea not null,
  body text not null,
  primary key (owner_id, number)
);
create index checkpoints_parts on checkpoints (owner_id, first_webhook, number);
create index checkpoints_old on checkpoints (created_at);
-- Whose the chain of a deleted webhook is, and when its last attempt was; null in earlier rows, whose
-- chains no checkpoint has.
alter table chain_ends add column owner_id text /*postgres collate "C"*/;
alter table chain_ends add column attempted_at bigint;
create index chain_ends_owners on chain_ends (owner_id, webhook_id) where owner_id is not null;
