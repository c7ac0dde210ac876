-- Carts, coupons with their uses, and discount modals with the coupons that they issued.

-- `digest` is the SHA-256 of a visitor's token; a customer's cart has none. `lines` is JSON as
-- gateway.domain.storefront.carts.rows keeps it: one row is a whole cart, so one lock is too. Only
-- the cart of a visitor expires.
create table carts (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  store_id text /*postgres collate "C"*/ not null,
  digest bytea,
  customer_id text /*postgres collate "C"*/,
  state text /*postgres collate "C"*/ not null,
  lines text not null,
  coupon_id text /*postgres collate "C"*/,
  cep text /*postgres collate "C"*/,
  shipping_type text /*postgres collate "C"*/,
  shipping_price bigint,
  order_id text /*postgres collate "C"*/,
  created_at bigint not null,
  touched_at bigint not null,
  expires_at bigint,
  ended_at bigint
);
create unique index carts_visitor on carts (store_id, digest) where digest is not null;
create unique index carts_customer on carts (store_id, customer_id)
  where customer_id is not null and state = 'active';
create index carts_of_customer on carts (store_id, customer_id) where customer_id is not null;
create index carts_of_store on carts (owner_id, store_id);
create index carts_expiring on carts (expires_at) where expires_at is not null;
create index carts_ended on carts (ended_at) where ended_at is not null;

-- `discount_percentage` is in hundredths of a percent. `uses` counts reserved and redeemed uses.
create table coupons (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text /*postgres collate "C"*/ not null,
  code text not null,
  discount_percentage bigint,
  discount_value bigint,
  min_total bigint,
  max_uses bigint,
  per_customer bigint,
  starts_at bigint,
  ends_at bigint,
  active boolean not null,
  uses bigint not null,
  modal_id text /*postgres collate "C"*/,
  folded text /*postgres collate "C"*/ not null
);
create index coupons_newest on coupons (owner_id, created_at desc, id desc, folded);
create index coupons_changed on coupons (owner_id, (coalesce(updated_at, created_at)), id);
create index coupons_store on coupons (owner_id, store_id, created_at desc, id desc);
create index coupons_modal on coupons (owner_id, modal_id, created_at desc, id desc)
  where modal_id is not null;
-- What the purge looks for: issued coupons that nobody used.
create index coupons_unused on coupons (ends_at) where modal_id is not null and uses = 0;

-- One row per code in use, folded; its key is what makes a code unique in its store.
create table coupon_codes (
  store_id text /*postgres collate "C"*/ not null,
  value text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references coupons (id) on delete cascade,
  primary key (store_id, value)
);
create index coupon_codes_record on coupon_codes (record_id);

-- The use of a coupon by an order, whose id is `id`. `holder` is the SHA-256 of the buyer's email.
create table coupon_uses (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  coupon_id text /*postgres collate "C"*/ not null,
  holder bytea not null,
  customer_id text /*postgres collate "C"*/,
  state text /*postgres collate "C"*/ not null,
  created_at bigint not null
);
create index coupon_uses_coupon on coupon_uses (owner_id, coupon_id);
create index coupon_uses_holder on coupon_uses (coupon_id, holder);
create index coupon_uses_customer on coupon_uses (coupon_id, customer_id)
  where customer_id is not null;

create table discount_modals (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text /*postgres collate "C"*/ not null,
  title text not null,
  prefix text not null,
  discount_percentage bigint,
  discount_value bigint,
  valid_days bigint not null,
  active boolean not null,
  folded text /*postgres collate "C"*/ not null
);
create index discount_modals_newest on discount_modals (owner_id, created_at desc, id desc, folded);
create index discount_modals_changed
  on discount_modals (owner_id, (coalesce(updated_at, created_at)), id);
create index discount_modals_store on discount_modals (owner_id, store_id, created_at desc, id desc);

-- The coupon `id` that a modal issued to an email, of which `holder` is the SHA-256. Its key is what
-- gives each email one coupon.
create table modal_coupons (
  id text /*postgres collate "C"*/ primary key references coupons (id) on delete cascade,
  owner_id text /*postgres collate "C"*/ not null,
  modal_id text /*postgres collate "C"*/ not null,
  holder bytea not null,
  code text not null,
  unique (modal_id, holder)
);
create index modal_coupons_modal on modal_coupons (owner_id, modal_id);
