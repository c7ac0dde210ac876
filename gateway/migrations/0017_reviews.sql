-- Reviews of products, their totals, and how many each customer writes.

create table reviews (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text /*postgres collate "C"*/ not null,
  product_id text /*postgres collate "C"*/ not null,
  customer_id text /*postgres collate "C"*/,
  author text,
  stars bigint not null,
  text text not null,
  status text /*postgres collate "C"*/ not null
);
create index reviews_newest on reviews (owner_id, created_at desc, id desc);
create index reviews_changed on reviews (owner_id, (coalesce(updated_at, created_at)), id);
create index reviews_status on reviews (owner_id, status, created_at desc, id desc);
create index reviews_store on reviews (owner_id, store_id, created_at desc, id desc);
create index reviews_product on reviews (owner_id, product_id, created_at desc, id desc);
create index reviews_published on reviews (product_id, created_at desc, id desc)
  where status = 'published';
create index reviews_customer on reviews (customer_id, product_id) where customer_id is not null;

-- The one review of a customer for a product, in a store that allows one.
create table review_claims (
  product_id text /*postgres collate "C"*/ not null,
  customer_id text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references reviews (id) on delete cascade,
  primary key (product_id, customer_id)
);
create index review_claims_record on review_claims (record_id);

-- The reviews that a customer wrote on a day; a row of another day has ended.
create table review_quotas (
  customer_id text /*postgres collate "C"*/ primary key,
  day bigint not null,
  n bigint not null
);
create index review_quotas_day on review_quotas (day);

-- The number of published reviews of a product, and the sum of their stars.
create table review_totals (
  product_id text /*postgres collate "C"*/ primary key references products (id) on delete cascade,
  n bigint not null,
  stars bigint not null
);

-- Triggers, so that no way to write a review can forget the totals. Product and stars never change.
/*sqlite
create trigger reviews_come after insert on reviews when new.status = 'published' begin
  insert into review_totals (product_id, n, stars) values (new.product_id, 1, new.stars)
  on conflict (product_id) do update set n = n + 1, stars = stars + excluded.stars;
end;
create trigger reviews_go after delete on reviews when old.status = 'published' begin
  update review_totals set n = n - 1, stars = stars - old.stars where product_id = old.product_id;
end;
create trigger reviews_appear after update of status on reviews
when new.status = 'published' and old.status <> 'published' begin
  insert into review_totals (product_id, n, stars) values (new.product_id, 1, new.stars)
  on conflict (product_id) do update set n = n + 1, stars = stars + excluded.stars;
end;
create trigger reviews_vanish after update of status on reviews
when old.status = 'published' and new.status <> 'published' begin
  update review_totals set n = n - 1, stars = stars - old.stars where product_id = old.product_id;
end;
*/
/*postgres
create function count_reviews() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' and old.status = 'published'
    and (tg_op = 'DELETE' or new.status <> 'published') then
    update review_totals set n = n - 1, stars = stars - old.stars
    where product_id = old.product_id;
  elsif tg_op <> 'DELETE' and new.status = 'published'
    and (tg_op = 'INSERT' or old.status <> 'published') then
    insert into review_totals as kept (product_id, n, stars)
    values (new.product_id, 1, new.stars)
    on conflict (product_id) do update set n = kept.n + 1, stars = kept.stars + excluded.stars;
  end if;
  return null;
end
$$;
create trigger reviews_counted after insert or delete or update of status on reviews
  for each row execute function count_reviews();
*/
