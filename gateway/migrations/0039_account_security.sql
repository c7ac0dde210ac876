-- additive
-- When an account has confirmed two-factor authentication, null without it; its secret is below.
alter table users add column two_factor_at bigint;

-- The shared secret of the codes of an account, sealed. `confirmed_at` is null until the account has
-- sent a code. `last_step` is the last step of 30 seconds whose code was used; `failures` counts wrong
-- codes in a row, and before `next_at` no code is checked.
create table two_factors (
  owner_id text /*postgres collate "C"*/ primary key references users (id),
  secret bytea not null,
  started_at bigint not null,
  confirmed_at bigint,
  last_step bigint not null default 0,
  failures bigint not null default 0,
  next_at bigint not null default 0
);

-- The unused recovery codes of an account, as digests.
create table recovery_codes (
  owner_id text /*postgres collate "C"*/ not null references users (id),
  digest bytea not null,
  primary key (owner_id, digest)
);

-- Addresses that somebody typed to get a new password, whether an account has them or not, so that
-- a request takes as long for both. A taken one keeps its row, which counts, for as long as a link
-- works.
create table reset_requests (
  id text /*postgres collate "C"*/ primary key,
  email text /*postgres collate "C"*/ not null,
  created_at bigint not null,
  due_at bigint
);
create index reset_requests_due on reset_requests (due_at) where due_at is not null;
create index reset_requests_email on reset_requests (email, created_at);
create index reset_requests_created on reset_requests (created_at);

-- Tokens of links in mails to accounts, as digests; `kind` is reset or email, with the new address.
create table account_tokens (
  digest bytea primary key,
  owner_id text /*postgres collate "C"*/ not null references users (id),
  kind text /*postgres collate "C"*/ not null,
  email text,
  created_at bigint not null,
  expires_at bigint not null
);
create index account_tokens_owner on account_tokens (owner_id, kind);
create index account_tokens_expiring on account_tokens (expires_at);

-- Mails to accounts; each is written when it is sent, so no token is stored here. `address` is null
-- for the account's address of that time; `facts` are lines of the mail. A row counts for two days.
create table account_mails (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null references users (id),
  kind text /*postgres collate "C"*/ not null,
  address text,
  facts text not null,
  created_at bigint not null,
  attempts bigint not null,
  due_at bigint,
  error text
);
create index account_mails_due on account_mails (due_at) where due_at is not null;
create index account_mails_owner on account_mails (owner_id, kind, created_at);
create index account_mails_created on account_mails (created_at);
