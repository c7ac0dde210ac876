-- additive
-- Erasures of persons: what was asked for, how far it is, and at the end the certificate.

-- `person` is what is needed to find the person: ids, emails, names and phones as JSON. It is null
-- as soon as nothing has to be found any more. `stage` is records, responses, log, files or done;
-- `place` is how far the stage is. `records` are the ids of the person's contacts and accounts,
-- `erased` and `kept` counts by kind, all JSON. `seal` is a digest over the certificate by the key
-- `seal_key` of the key ring.
create table person_erasures (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  noun text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null,
  requested_at bigint not null,
  completed_at bigint,
  stage text /*postgres collate "C"*/ not null,
  place text not null default '',
  person text,
  records text not null default '[]',
  erased text not null default '{}',
  kept text not null default '{}',
  seal text,
  seal_key text
);
create unique index person_erasures_record on person_erasures (owner_id, record_id);
create index person_erasures_newest on person_erasures (owner_id, id desc);
create index person_erasures_working on person_erasures (owner_id, id)
  where stage in ('records', 'responses');
create index person_erasures_ending on person_erasures (stage, id) where stage in ('log', 'files');

-- Orders by email: a guest's order may have no contact any more.
create index orders_email on orders (owner_id, lower(email));
-- The answers to repeated checkouts of an order.
create index checkouts_order on checkouts (order_id);
