-- Lanes take turns by when they had their last one; fan-out waits for no lane; a delivery that is
-- rescued again and again ends.

alter table lanes add column turned_at bigint not null default 0;
-- Places given out so far: every fourth goes to a retry while first attempts wait too.
alter table lanes add column served bigint not null default 0;

alter table deliveries add column rescues bigint not null default 0;

-- Lanes that somebody held while fan-out made deliveries for them; no key, so that inserting never
-- waits.
create table wakes (
  webhook_id text /*postgres collate "C"*/ not null
);

-- On PostgreSQL a position in `events` does not tell what had committed when a webhook was made.
alter table webhooks add column since_snapshot text;
/*postgres
create index webhooks_since on webhooks (id) where since_snapshot is not null;
alter table events add column xid xid8;
alter table events alter column xid set default pg_current_xact_id();
*/
