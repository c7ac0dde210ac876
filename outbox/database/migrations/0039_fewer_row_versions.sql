-- additive
-- A success behind another one changes nothing of its webhook but two times, which are kept to the
-- second from now on: the turn at once leaves the row as it is, one row version less for most events.
-- It has a name of its own: nodes of the release before call the older form.
/*postgres
do $$
declare
  before constant text := pg_get_functiondef(to_regproc('drain_at_once_3'));
  after constant text := replace(replace(before, 'drain_at_once_3', 'drain_at_once_4'),
    'where webhooks.id = s.hook;',
    'where webhooks.id = s.hook and case when last_success_at between moment - 1000000 and moment
        and last_outcome = ''success'' and last_status = s.status and failures = 0
        and failing_since is null and failed_events is null and unreadable is null
      then false else true end;');
begin
  if position('between moment - 1000000' in after) = 0 then
    raise exception 'the turn at once has another text';
  end if;
  execute after;
end $$;
*/
