-- additive
-- When an event was stored, by the due clock of the server, which all nodes share. How long it waited
-- for a node that took nothing counts to the lag of its deliveries. SQLite has one node, whose events
-- are fanned out by the process that stores them. Nodes of the release before call the older form of the
-- turn at once, and events from before have no such time.
--
-- For each webhook of an event the turn looks whether deliveries wait in its lane, and for each lane that
-- waits whether something passes. Without an offset a planner that takes the tables for small, as before
-- their first analyze, read all that wait and pass anywhere, once for the statement.
/*postgres
alter table events add column due_at bigint;
alter table events alter column due_at set default due_now();
do $$
declare
  before constant text := pg_get_functiondef(to_regproc('drain_at_once_5'));
  after constant text := replace(replace(replace(replace(replace(replace(replace(before, 'drain_at_once_5', 'drain_at_once_6'),
    'lag_us bigint, ', 'lag_us bigint, waited_us bigint, '),
    'due - greatest(d.next_at, l.wait_until),',
    'due - greatest(d.next_at, l.wait_until), due - greatest(coalesce(e.due_at, d.next_at), l.wait_until),'),
    'd.retry = false and d.next_at <= due)', 'd.retry = false and d.next_at <= due offset 0)'),
    'd.retry = true and d.next_at <= due)', 'd.retry = true and d.next_at <= due offset 0)'),
    'passes p where p.webhook_id = lanes.webhook_id and p.pauses)',
    'passes p where p.webhook_id = lanes.webhook_id and p.pauses offset 0)'),
    'passes p where p.webhook_id = lanes.webhook_id)',
    'passes p where p.webhook_id = lanes.webhook_id offset 0)');
begin
  if position('coalesce(e.due_at' in after) = 0 or position(' waited_us bigint' in after) = 0
    or position('false and d.next_at <= due offset 0' in after) = 0
    or position('true and d.next_at <= due offset 0' in after) = 0
    or position('lanes.webhook_id offset 0' in after) = 0
    or position('p.pauses offset 0' in after) = 0 then
    raise exception 'the turn at once has another text';
  end if;
  execute after;
end $$;
*/
