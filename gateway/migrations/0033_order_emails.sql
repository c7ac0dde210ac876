-- The email of an order in the form in which addresses are compared; the next step folds those that
-- are not ASCII.
alter table orders add column email_folded text /*postgres collate "C"*/;
update orders set email_folded = lower(email /*postgres collate "C"*/);
drop index orders_email;
create index orders_email on orders (owner_id, email_folded);
