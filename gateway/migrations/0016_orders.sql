-- Orders of the stores, what they reserve, and what lets a checkout be repeated.

create table orders (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  number text /*postgres collate "C"*/ not null,
  status text /*postgres collate "C"*/ not null,
  store_id text /*postgres collate "C"*/,
  customer_id text /*postgres collate "C"*/,
  items text not null,
  subtotal bigint not null,
  discount bigint not null,
  shipping bigint not null,
  total bigint not null,
  currency text not null,
  coupon text,
  shipping_option text,
  name text not null,
  email text not null,
  phone text,
  document text,
  address text,
  payment_method text /*postgres collate "C"*/ not null,
  notes text,
  expires_at bigint not null,
  paid_at bigint,
  canceled_at bigint,
  reason text,
  contact_id text /*postgres collate "C"*/,
  invoice_id text /*postgres collate "C"*/,
  deal_id text /*postgres collate "C"*/,
  folded text /*postgres collate "C"*/ not null
);
create unique index orders_number on orders (owner_id, number);
create index orders_newest on orders (owner_id, created_at desc, id desc, status);
create index orders_changed on orders (owner_id, (coalesce(updated_at, created_at)), id);
create index orders_expiry on orders (owner_id, expires_at, id);
create index orders_store on orders (owner_id, store_id, created_at desc, id desc);
create index orders_customer on orders (owner_id, customer_id, created_at desc, id desc)
  where customer_id is not null;
create index orders_contact on orders (owner_id, contact_id) where contact_id is not null;
create index orders_deal on orders (owner_id, deal_id) where deal_id is not null;
create index orders_expiring on orders (expires_at) where status = 'pending';
create index invoices_order on invoices (owner_id, order_id) where order_id is not null;

-- The SHA-256 of the token that shows an order without a sign-in.
create table order_tokens (
  digest bytea primary key,
  order_id text /*postgres collate "C"*/ not null
);
create index order_tokens_order on order_tokens (order_id);

-- Items that a pending order has taken out of the stock of a product.
create table stock_reservations (
  order_id text /*postgres collate "C"*/ not null,
  product_id text /*postgres collate "C"*/ not null,
  quantity bigint not null,
  primary key (order_id, product_id)
);

-- One row per idempotency key of a visitor. `visitor` is a customer or the digest of a cart token;
-- `sealed` has the secrets of the first response, encrypted.
create table checkouts (
  store_id text /*postgres collate "C"*/ not null,
  visitor text /*postgres collate "C"*/ not null,
  key text /*postgres collate "C"*/ not null,
  fingerprint bytea not null,
  order_id text /*postgres collate "C"*/ not null,
  sealed bytea not null,
  created_at bigint not null,
  primary key (store_id, visitor, key)
);
create index checkouts_created on checkouts (created_at);
