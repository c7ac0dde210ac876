-- Rows whose folded columns follow an older rule: the next step takes them from here.
create table refolding (
  kind text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null,
  primary key (kind, record_id)
);

-- The email of an order in the form in which addresses are compared.
alter table orders add column email_folded text /*postgres collate "C"*/;
update orders set email_folded = lower(email /*postgres collate "C"*/);
drop index orders_email;
create index orders_email on orders (owner_id, email_folded);

-- Text with more bytes than letters is not ASCII.
insert into refolding (kind, record_id) select 'users', id from users
where /*sqlite length(cast(email as blob))*/ /*postgres octet_length(email)*/ > length(email);
insert into refolding (kind, record_id) select 'customers', id from customers
where /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded)
  or /*sqlite length(cast(email as blob))*/ /*postgres octet_length(email)*/ > length(email);
insert into refolding (kind, record_id) select 'orders', id from orders
where /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded)
  or /*sqlite length(cast(email as blob))*/ /*postgres octet_length(email)*/ > length(email);
insert into refolding (kind, record_id) select 'contacts', id from contacts
where phone_e164 is not null
  or /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded)
  or /*sqlite length(cast(email as blob))*/ /*postgres octet_length(email)*/ > length(email);
insert into refolding (kind, record_id) select 'companies', id from companies
where phone_e164 is not null
  or /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded);
insert into refolding (kind, record_id) select 'products', id from products
where /*sqlite length(cast(categories as blob))*/ /*postgres octet_length(categories)*/
    > length(categories)
  or /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded);
insert into refolding (kind, record_id) select 'stores', id from stores
where /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded);
insert into refolding (kind, record_id) select 'categories', id from categories
where /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded);
insert into refolding (kind, record_id) select 'ebooks', id from ebooks
where /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded);
insert into refolding (kind, record_id) select 'coupons', id from coupons
where /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded);
insert into refolding (kind, record_id) select 'discount_modals', id from discount_modals
where /*sqlite length(cast(folded as blob))*/ /*postgres octet_length(folded)*/ > length(folded);
