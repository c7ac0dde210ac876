-- additive
-- The record of an owner that an import made from a record of another account, which has another id
-- there. A row outlives its record, and then names none.
create table imported_ids (
  owner_id text /*postgres collate "C"*/ not null,
  origin_id text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null,
  primary key (owner_id, origin_id)
);
create index imported_ids_record on imported_ids (owner_id, record_id);
