-- What a buyer agrees to: the goods that are shipped, and the total that the cart showed last.
alter table products add column requires_shipping boolean not null default true;
alter table carts add column shown_total bigint;

-- An ended cart keeps its digest, so that the visitor's next cart gets an id of its own. The active
-- cart comes first, then the one that ended last.
drop index carts_visitor;
create unique index carts_visitor on carts (store_id, digest)
  where digest is not null and state = 'active';
create index carts_of_visitor
  on carts (store_id, digest, (coalesce(ended_at, 9223372036854775807)) desc)
  where digest is not null;
drop index carts_of_customer;
create index carts_of_customer
  on carts (store_id, customer_id, (coalesce(ended_at, 9223372036854775807)) desc)
  where customer_id is not null;
