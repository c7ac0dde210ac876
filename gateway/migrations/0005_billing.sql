-- Products, quotes and invoices, and the counters that number them.

create table products (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  name text not null,
  description text,
  sku text /*postgres collate "C"*/,
  slug text /*postgres collate "C"*/,
  price bigint not null,
  compare_at_price bigint,
  currency text not null,
  stock bigint,
  weight_grams bigint,
  categories text not null,
  images text not null,
  active boolean not null,
  published boolean not null,
  store_id text /*postgres collate "C"*/,
  folded text /*postgres collate "C"*/ not null,
  sort_name text /*postgres collate "C"*/ not null
);
create index products_newest on products (owner_id, created_at desc, id desc, folded);
create index products_changed on products (owner_id, (coalesce(updated_at, created_at)), id);
create index products_name on products (owner_id, sort_name, id);
create index products_price on products (owner_id, price, id);

-- One row per sku in use; its key is what makes a sku an owner's only one.
create table product_skus (
  owner_id text /*postgres collate "C"*/ not null,
  value text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references products (id) on delete cascade,
  primary key (owner_id, value)
);
create index product_skus_record on product_skus (record_id);

create table product_categories (
  owner_id text /*postgres collate "C"*/ not null,
  value text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references products (id) on delete cascade,
  primary key (owner_id, value, record_id)
);
create index product_categories_record on product_categories (record_id);

-- The last number given of each series; see gateway.domain.sales.numbering.
create table counters (
  owner_id text /*postgres collate "C"*/ not null,
  series text /*postgres collate "C"*/ not null,
  n bigint not null,
  primary key (owner_id, series)
);

-- `items` is JSON as gateway.domain.sales.lines keeps it. `lapses_at` is when the sweeper looks.
create table quotes (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  number text /*postgres collate "C"*/ not null,
  status text /*postgres collate "C"*/ not null,
  items text not null,
  subtotal bigint not null,
  discount bigint not null,
  total bigint not null,
  currency text not null,
  contact_id text /*postgres collate "C"*/,
  company_id text /*postgres collate "C"*/,
  deal_id text /*postgres collate "C"*/,
  valid_until bigint,
  valid_day boolean,
  lapses_at bigint,
  sent_at bigint,
  accepted_at bigint,
  rejected_at bigint,
  invoice_id text /*postgres collate "C"*/,
  notes text
);
create unique index quotes_number on quotes (owner_id, number);
-- What the filter on `status` looks at rides along.
create index quotes_newest
  on quotes (owner_id, created_at desc, id desc, status, valid_until, valid_day);
create index quotes_changed on quotes (owner_id, (coalesce(updated_at, created_at)), id);
create index quotes_contact on quotes (owner_id, contact_id) where contact_id is not null;
create index quotes_company on quotes (owner_id, company_id) where company_id is not null;
create index quotes_deal on quotes (owner_id, deal_id) where deal_id is not null;
create index quotes_lapsing on quotes (lapses_at) where status = 'sent' and lapses_at is not null;

create table invoices (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  number text /*postgres collate "C"*/ not null,
  status text /*postgres collate "C"*/ not null,
  items text not null,
  subtotal bigint not null,
  discount bigint not null,
  shipping bigint not null,
  total bigint not null,
  currency text not null,
  due_at bigint not null,
  due_day boolean not null,
  paid_at bigint,
  method text /*postgres collate "C"*/,
  reference text,
  canceled_at bigint,
  reason text,
  contact_id text /*postgres collate "C"*/,
  company_id text /*postgres collate "C"*/,
  deal_id text /*postgres collate "C"*/,
  quote_id text /*postgres collate "C"*/,
  order_id text /*postgres collate "C"*/,
  notes text
);
create unique index invoices_number on invoices (owner_id, number);
create index invoices_newest
  on invoices (owner_id, created_at desc, id desc, status, due_at, due_day, total);
create index invoices_changed on invoices (owner_id, (coalesce(updated_at, created_at)), id);
create index invoices_due on invoices (owner_id, due_at, id);
-- What is owed, by age: the report reads the index alone.
create index invoices_owed on invoices (owner_id, due_at, due_day, total) where status = 'pending';
create index invoices_paid on invoices (owner_id, paid_at, total) where paid_at is not null;
create index invoices_contact on invoices (owner_id, contact_id) where contact_id is not null;
create index invoices_company on invoices (owner_id, company_id) where company_id is not null;
create index invoices_deal on invoices (owner_id, deal_id) where deal_id is not null;
create index invoices_quote on invoices (owner_id, quote_id) where quote_id is not null;

-- For the reports: deals by the day on which they ended.
create index deals_closed on deals (owner_id, closed_at, status, value) where closed_at is not null;
