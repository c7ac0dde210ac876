-- Records that are gone and still have dependants to settle; see gateway.records.ends and
-- gateway.records.dependants. A row goes when the last of them is settled.
create table pending_ends (
  owner_id text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null,
  noun text /*postgres collate "C"*/ not null,
  primary key (owner_id, record_id)
);
