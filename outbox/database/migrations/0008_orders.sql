-- Ordered webhooks: of the deliveries of one record only the first one is ready or in flight, the
-- others are held. `ordered` marks the deliveries that stand in such a line.
alter table deliveries add column ordered boolean not null default false;
-- The heads of the lines, one each; a delivery of any other webhook pays nothing for it.
create unique index deliveries_heads on deliveries (webhook_id, record_id)
  where ordered and state in ('ready', 'in_flight');

-- A lane whose waiting deliveries are being put into lines, or taken out of them.
alter table lanes add column turning boolean not null default false;
create index lanes_turning on lanes (webhook_id) where turning;

-- A held delivery that may be the first of its record, when its lane was locked.
alter table wakes add column delivery_id text /*postgres collate "C"*/;
