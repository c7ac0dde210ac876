-- additive
-- What the page of a failing webhook shows: its last failed attempts, and the deliveries that wait
-- after a failed one. Attempts that succeed pay nothing for it.
create index attempts_failed on attempts (webhook_id, started_at desc)
  where outcome <> 'success';
create index deliveries_failed on deliveries (webhook_id, id desc)
  where state = 'ready' and last_outcome is not null;
