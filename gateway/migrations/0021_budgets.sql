-- additive
-- What bounds the unpaid orders and the new carts of one visitor.

-- Whose budgets a pending order uses: a digest of its buyer's networks and email each. A digest needs
-- a key of the installation to be computed, and its row goes when the order ends.
create table order_holders (
  order_id text /*postgres collate "C"*/ not null,
  holder text /*postgres collate "C"*/ not null,
  primary key (order_id, holder)
);
create index order_holders_holder on order_holders (holder);

-- The carts that a network began within a day of `began_at`; `holder` as above.
create table cart_quotas (
  holder text /*postgres collate "C"*/ primary key,
  began_at bigint not null,
  carts bigint not null
);
create index cart_quotas_began on cart_quotas (began_at);
