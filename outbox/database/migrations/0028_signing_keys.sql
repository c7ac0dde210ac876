-- additive
-- The Ed25519 keys of the installation, whose public halves everybody may have: see
-- outbox.webhooks.signing_keys. `private_key` is encrypted with the key ring, and null after the
-- end of the key. The one without `ends_at` is the current one.
create table signing_keys (
  id text /*postgres collate "C"*/ primary key,
  public_key bytea not null,
  private_key bytea,
  created_at bigint not null,
  ends_at bigint
);
create unique index signing_keys_current on signing_keys ((ends_at is null)) where ends_at is null;
-- Whether the requests of a webhook carry signatures by these keys too.
alter table webhooks add column ed25519 boolean not null default false;
