-- One queue of the mails to customers of stores, to buyers, to accounts, and to the contacts of quotes
-- and invoices, in the place of three. A mail is written when it is sent, so no token is stored here.
-- `due_at` is null when it was sent, given up or dropped; the row counts until `expires_at`.
-- `customer_id`, `order_id` or `document_id` is what it is about; `mailbox` is a digest of what the
-- spellings of an address have in common; `address` is null for the one of the person at that time;
-- `facts` are lines of the mail.
create table queued_mails (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  kind text /*postgres collate "C"*/ not null,
  customer_id text /*postgres collate "C"*/ references customers (id) on delete cascade,
  order_id text /*postgres collate "C"*/,
  document_id text /*postgres collate "C"*/,
  contact_id text /*postgres collate "C"*/,
  mailbox bytea,
  address text,
  facts text,
  created_at bigint not null,
  attempts bigint not null,
  due_at bigint,
  expires_at bigint not null,
  error text
);
insert into queued_mails
  (id, owner_id, kind, customer_id, created_at, attempts, due_at, expires_at, error)
select m.id, c.owner_id, m.kind, m.customer_id, m.created_at, m.attempts, m.due_at,
  m.created_at + 2592000000000, m.error
from mails m join customers c on c.id = m.customer_id;
insert into queued_mails
  (id, owner_id, kind, order_id, contact_id, mailbox, created_at, attempts, due_at, expires_at, error)
select id, owner_id, kind, order_id, contact_id, mailbox, created_at, attempts, due_at,
  created_at + 172800000000, error
from order_mails;
insert into queued_mails
  (id, owner_id, kind, address, facts, created_at, attempts, due_at, expires_at, error)
select id, owner_id, kind, address, facts, created_at, attempts, due_at,
  created_at + 172800000000, error
from account_mails;
drop table mails;
drop table order_mails;
drop table account_mails;
create unique index queued_mails_once on queued_mails (order_id, kind) where order_id is not null;
create index queued_mails_due on queued_mails (due_at) where due_at is not null;
create index queued_mails_expiring on queued_mails (expires_at);
create index queued_mails_owner on queued_mails (owner_id, kind, created_at);
create index queued_mails_customer on queued_mails (customer_id) where customer_id is not null;
create index queued_mails_document on queued_mails (document_id) where document_id is not null;
create index queued_mails_contact
  on queued_mails (owner_id, contact_id) where contact_id is not null;
create index queued_mails_mailbox
  on queued_mails (owner_id, mailbox, created_at) where mailbox is not null;
