-- additive
-- What an owner limits or chooses for the requests of one webhook; null or false means as before.
-- `rate` is in requests per 1,000 seconds. `certificate` is sealed: the chain and the key in PEM.
alter table webhooks add column concurrency bigint;
alter table webhooks add column rate bigint;
alter table webhooks add column certificate bytea;
alter table webhooks add column certificate_until bigint;
alter table webhooks add column proxy text;
alter table webhooks add column thin boolean not null default false;
-- Copies for the claim, which reads lanes alone.
alter table lanes add column concurrency bigint;
alter table lanes add column rate bigint;
