-- additive
-- How buyers pay: the methods that a store accepts, the page that takes cards, the secret that signs
-- the calls of a payment provider, and the payments that it reported.

alter table stores add column payment_methods text not null
  default '["pix","boleto","card","transfer","cash"]';
alter table stores add column checkout_url text;

-- Payments that came when the order had ended already.
alter table orders add column late_payment_at bigint;
alter table invoices add column late_payments text;
create index orders_late on orders (owner_id, created_at desc, id desc)
  where late_payment_at is not null;

-- Encrypted. A staged secret is valid beside the current one, a replaced one until its time.
create table payment_secrets (
  store_id text /*postgres collate "C"*/ primary key references stores (id) on delete cascade,
  secret bytea not null,
  staged_secret bytea,
  old_secret bytea,
  old_secret_until bigint
);
create index payment_secrets_ending on payment_secrets (old_secret_until)
  where old_secret_until is not null;

-- One row per reference of a provider, so that a repeated call is known.
create table payments (
  store_id text /*postgres collate "C"*/ not null references stores (id) on delete cascade,
  reference text not null,
  order_id text /*postgres collate "C"*/ not null,
  amount bigint not null,
  late boolean not null,
  received_at bigint not null,
  primary key (store_id, reference)
);
