-- additive
-- The greatest seq of a delivery to a webhook that retention has deleted: whether an event up to it
-- arrived, the log no longer shows. See outbox.queue.forgotten.
create table forgotten (
  webhook_id text /*postgres collate "C"*/ primary key
    references webhooks (id) on delete cascade,
  seq bigint not null
);
-- Where deliveries were deleted before this version: what is older than the oldest delivery that
-- succeeded at once, or everything when none is left.
insert into forgotten (webhook_id, seq)
select w.id, coalesce(
  (select d.seq from deliveries d
   where d.webhook_id = w.id and d.state = 'delivered' and d.attempts = 1 and d.origin = 'event'
   order by d.id limit 1),
  (select seq from outbox_state))
from webhooks w where w.id in (select webhook_id from chain_gaps);
