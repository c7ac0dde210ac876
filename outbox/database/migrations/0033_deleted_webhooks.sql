-- additive
-- Deleted webhooks, while the log has their deliveries. A result that comes after the deletion locks
-- the row of its webhook, in place of the lane, to continue the chain in `chain_ends`. `cancelled` is
-- how many deliveries ended with the webhook.
create table deleted_webhooks (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  url text not null,
  description text,
  deleted_at bigint not null,
  cancelled bigint not null
);
create index deleted_webhooks_owner on deleted_webhooks (owner_id, deleted_at desc, id desc);
insert into deleted_webhooks (id, owner_id, url, deleted_at, cancelled)
select e.webhook_id, e.owner_id, coalesce((
  select a.url from attempts a where a.delivery_id = (
    select d.id from deliveries d where d.webhook_id = e.webhook_id and d.attempts > 0
    order by d.id desc limit 1)
  order by a.number desc limit 1), ''), coalesce(e.attempted_at, 0), 0
from chain_ends e where e.owner_id is not null;
-- Until when the rate of the owner holds a lane, or his move to another database. `wait_until` is
-- the later one of this and of what the receiver asked for.
alter table lanes add column rate_until bigint not null default 0;
update lanes set rate_until = wait_until where rate is not null or wait_until >= 2305843009213693952;
-- Whether a delivery passes a pause that its receiver asked for, too.
alter table passes add column pauses boolean not null default false;
-- The first events whose attempts have failed since the last success, until there are enough of them
-- to disable the webhook: see outbox.queue.state.evidence.
alter table webhooks add column failed_events text;
