-- additive
-- A list of what names a record, such as the contacts of a company, is read in its order. SQLite
-- walked all records of the owner for it, because only the index of these had the order.
drop index contacts_company;
create index contacts_company on contacts (owner_id, company_id, created_at desc, id desc)
  where company_id is not null;
drop index deals_company;
create index deals_company on deals (owner_id, company_id, created_at desc, id desc)
  where company_id is not null;
drop index tasks_contact;
create index tasks_contact on tasks (owner_id, contact_id, created_at desc, id desc)
  where contact_id is not null;
drop index tasks_deal;
create index tasks_deal on tasks (owner_id, deal_id, created_at desc, id desc)
  where deal_id is not null;
drop index invoices_contact;
create index invoices_contact on invoices (owner_id, contact_id, created_at desc, id desc)
  where contact_id is not null;
drop index invoices_company;
create index invoices_company on invoices (owner_id, company_id, created_at desc, id desc)
  where company_id is not null;
drop index quotes_contact;
create index quotes_contact on quotes (owner_id, contact_id, created_at desc, id desc)
  where contact_id is not null;
drop index quotes_company;
create index quotes_company on quotes (owner_id, company_id, created_at desc, id desc)
  where company_id is not null;
drop index orders_contact;
create index orders_contact on orders (owner_id, contact_id, created_at desc, id desc)
  where contact_id is not null;
drop index invoices_deal;
create index invoices_deal on invoices (owner_id, deal_id, created_at desc, id desc)
  where deal_id is not null;
drop index invoices_quote;
create index invoices_quote on invoices (owner_id, quote_id, created_at desc, id desc)
  where quote_id is not null;
drop index invoices_order;
create index invoices_order on invoices (owner_id, order_id, created_at desc, id desc)
  where order_id is not null;
drop index quotes_deal;
create index quotes_deal on quotes (owner_id, deal_id, created_at desc, id desc)
  where deal_id is not null;
drop index orders_deal;
create index orders_deal on orders (owner_id, deal_id, created_at desc, id desc)
  where deal_id is not null;
drop index products_store;
create index products_store on products (owner_id, store_id, created_at desc, id desc)
  where store_id is not null;
