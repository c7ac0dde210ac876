-- Customers of stores: accounts, sessions, addresses, identities, one-time tokens, and mails.

alter table stores add column password_reset_url text;
alter table stores add column email_verification_url text;

-- `password_hash` is null for an account that signs in by an identity provider alone.
create table customers (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text /*postgres collate "C"*/ not null,
  name text not null,
  email text,
  phone text,
  email_verified boolean not null,
  accepts_marketing boolean not null,
  contact_id text /*postgres collate "C"*/,
  password_hash text,
  folded text /*postgres collate "C"*/ not null,
  sort_name text /*postgres collate "C"*/ not null
);
create index customers_newest on customers (owner_id, created_at desc, id desc, folded);
create index customers_changed on customers (owner_id, (coalesce(updated_at, created_at)), id);
create index customers_name on customers (owner_id, sort_name, id);
create index customers_store on customers (owner_id, store_id, created_at desc, id desc);
create index customers_contact on customers (owner_id, contact_id) where contact_id is not null;

-- The email of each account, trimmed and case folded; unique in its store.
create table customer_emails (
  store_id text /*postgres collate "C"*/ not null,
  value text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references customers (id) on delete cascade,
  primary key (store_id, value)
);
create index customer_emails_record on customer_emails (record_id);

-- The id is the claim `sid` of the customer's token; without the row the token is worth nothing.
create table customer_sessions (
  id text /*postgres collate "C"*/ primary key,
  customer_id text /*postgres collate "C"*/ not null references customers (id) on delete cascade,
  created_at bigint not null,
  expires_at bigint not null
);
create index customer_sessions_customer on customer_sessions (customer_id, created_at, id);
create index customer_sessions_expiring on customer_sessions (expires_at);

create table customer_addresses (
  id text /*postgres collate "C"*/ primary key,
  customer_id text /*postgres collate "C"*/ not null references customers (id) on delete cascade,
  created_at bigint not null,
  name text,
  street text not null,
  number text not null,
  complement text,
  district text,
  city text not null,
  state text not null,
  cep text not null
);
create index customer_addresses_customer on customer_addresses (customer_id, created_at, id);

-- The accounts at identity providers that sign a customer in.
create table customer_identities (
  store_id text /*postgres collate "C"*/ not null,
  issuer text /*postgres collate "C"*/ not null,
  subject text /*postgres collate "C"*/ not null,
  customer_id text /*postgres collate "C"*/ not null references customers (id) on delete cascade,
  created_at bigint not null,
  primary key (store_id, issuer, subject)
);
create index customer_identities_customer on customer_identities (customer_id);

-- The nonces that a store which requires them accepted, until their tokens expire.
create table used_nonces (
  store_id text /*postgres collate "C"*/ not null,
  digest bytea not null,
  expires_at bigint not null,
  primary key (store_id, digest)
);
create index used_nonces_expiring on used_nonces (expires_at);

-- Tokens of mails, as digests; `kind` is reset or verify.
create table customer_tokens (
  digest bytea primary key,
  customer_id text /*postgres collate "C"*/ not null references customers (id) on delete cascade,
  kind text /*postgres collate "C"*/ not null,
  created_at bigint not null,
  expires_at bigint not null
);
create index customer_tokens_customer on customer_tokens (customer_id, kind);
create index customer_tokens_expiring on customer_tokens (expires_at);

-- Mails to send; each is written when it is sent, so no token is stored here. A sent mail has no
-- row; one that was given up keeps its row for a while.
create table mails (
  id text /*postgres collate "C"*/ primary key,
  customer_id text /*postgres collate "C"*/ not null references customers (id) on delete cascade,
  kind text /*postgres collate "C"*/ not null,
  created_at bigint not null,
  attempts bigint not null,
  due_at bigint,
  failed_at bigint,
  error text
);
create index mails_due on mails (due_at) where due_at is not null;
create index mails_failed on mails (failed_at) where failed_at is not null;
create index mails_customer on mails (customer_id);
