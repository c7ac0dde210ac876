-- additive
-- Mails to buyers about their orders. Stores from before send none until their owner says so: their
-- shops may write such mails already.

alter table stores add column language text /*postgres collate "C"*/ not null default 'pt-BR';
alter table stores add column order_mails boolean not null default false;
alter table stores add column order_page_url text;

-- A mail is written when it is sent, so its row holds no address, no amount and no token; `mailbox` is
-- a digest of what the spellings of the address have in common. `due_at` is null when it was sent, given up or dropped; the row stays for the limit of a day.
create table order_mails (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  order_id text /*postgres collate "C"*/ not null,
  contact_id text /*postgres collate "C"*/ not null,
  mailbox bytea not null,
  kind text /*postgres collate "C"*/ not null,
  created_at bigint not null,
  attempts bigint not null,
  due_at bigint,
  error text
);
create unique index order_mails_once on order_mails (order_id, kind);
create index order_mails_due on order_mails (due_at) where due_at is not null;
create index order_mails_contact on order_mails (owner_id, contact_id);
create index order_mails_mailbox on order_mails (owner_id, mailbox, created_at);
create index order_mails_created on order_mails (created_at);
