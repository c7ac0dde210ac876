-- additive
-- The turn at once tells of deliveries that it has made and not claimed only where their lane is due,
-- or locked. Those of a paused webhook, or of one whose receiver is down, made each event cost a claim
-- in parts. It has a name of its own: nodes of the release before call the older form.
/*postgres
do $$
declare
  before constant text := pg_get_functiondef(to_regproc('drain_at_once_4'));
  after constant text := replace(replace(before, 'drain_at_once_4', 'drain_at_once_5'),
    'from webhooks w where w.id = any (waiting))',
    'from webhooks w join lanes l on l.webhook_id = w.id
      where w.id = any (waiting) and (l.active and l.due_at <= due or w.id <> all (free)))');
begin
  if position('w.id <> all (free)))' in after) = 0 then
    raise exception 'the turn at once has another text';
  end if;
  execute after;
end $$;
*/
