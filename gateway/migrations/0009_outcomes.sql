-- The door writes and reads an outcome as one text, and an operation has one name.
drop index idempotency_old;
alter table idempotency rename to responses;
create table idempotency (
  owner_id text /*postgres collate "C"*/ not null,
  key text /*postgres collate "C"*/ not null,
  operation text /*postgres collate "C"*/ not null,
  fingerprint bytea not null,
  outcome text,
  created_at bigint not null,
  primary key (owner_id, key, operation)
);
insert into idempotency (owner_id, key, operation, fingerprint, outcome, created_at)
select owner_id, key, method || ' ' || path, fingerprint,
  case when status is not null then
    /*sqlite json_array(status, json(headers), cast(body as text))*/
    /*postgres json_build_array(status, headers::json, convert_from(body, 'UTF8'))::text*/
  end, created_at
from responses;
drop table responses;
create index idempotency_old on idempotency (created_at);
