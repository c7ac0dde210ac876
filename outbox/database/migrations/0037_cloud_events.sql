-- additive
-- The form of a webhook's requests: null for that of the contract, or a content mode of CloudEvents.
-- With `handshake` its receiver is asked for permission first; what it allowed last is noted, the
-- rate in requests per 1,000 seconds. The turn at once tells the drain of the two settings, under a
-- name of its own: nodes of the release before call the older form.
alter table webhooks add column format text;
alter table webhooks add column handshake boolean not null default false;
alter table webhooks add column allowed_at bigint;
alter table webhooks add column allowed_rate bigint;
/*postgres
do $$
declare
  before constant text := pg_get_functiondef(
    coalesce(to_regproc('drain_at_once_2'), to_regproc('drain_at_once_1')));
  after constant text := replace(regexp_replace(before, 'drain_at_once_[12]', 'drain_at_once_3'),
    E'))\n      from webhooks w where w.id in (',
    E', w.format, case when w.handshake then coalesce(w.rate, 0) end))\n      from webhooks w where w.id in (');
begin
  if position('w.format' in after) = 0 then
    raise exception 'the turn at once has another text';
  end if;
  execute after;
end $$;
*/
