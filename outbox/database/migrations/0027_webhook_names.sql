-- additive
-- The owner's name of a webhook: it stays the same when the rest changes, so that files can use it.
alter table webhooks add column name text /*postgres collate "C"*/;
create unique index webhooks_name on webhooks (owner_id, name) where name is not null;
-- The app that the owner allowed to make it: it alone got the secret.
alter table webhooks add column app text;
