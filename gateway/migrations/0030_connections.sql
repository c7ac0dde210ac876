-- additive
-- Codes with which an app fetches the webhook that an owner has allowed it; each is known by its
-- digest, and the app proves itself by what `challenge` is the digest of. `webhook_id` is there when
-- the code was used.
create table connect_codes (
  digest bytea primary key,
  owner_id text /*postgres collate "C"*/ not null,
  app text not null,
  app_name text not null,
  redirect_uri text not null,
  challenge text not null,
  url text not null,
  events text not null,
  webhook_id text /*postgres collate "C"*/,
  created_at bigint not null,
  expires_at bigint not null
);
create index connect_codes_expiring on connect_codes (expires_at);
create index connect_codes_owner on connect_codes (owner_id);
