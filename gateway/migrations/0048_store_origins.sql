-- The origins that the active stores allow, so that one is found without reading all stores.

create table store_origins (
  value text /*postgres collate "C"*/ not null,
  owner_id text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references stores (id) on delete cascade,
  primary key (value, owner_id, record_id)
);
create index store_origins_owner on store_origins (owner_id);
create index store_origins_record on store_origins (record_id);

insert into store_origins (value, owner_id, record_id)
select distinct o.value, s.owner_id, s.id
from stores s
/*sqlite join json_each(s.allowed_origins) o*/
/*postgres cross join lateral json_array_elements_text(cast(s.allowed_origins as json)) as o(value)*/
where s.active;
