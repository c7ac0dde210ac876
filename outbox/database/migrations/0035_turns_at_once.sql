-- additive
-- A turn of the drain as one statement on PostgreSQL, where each statement is a round trip. It runs
-- the statements of settle, claim and fan-out, each with a snapshot of its own, for the usual case; it
-- leaves every other case untouched, for the units that do the same in parts: see
-- outbox.queue.drain.at_once. The release before never calls it. A later form of it needs a name of
-- its own, because nodes of two releases may work at once.
/*postgres
create function drain_at_once_1(
  plan json, result_hooks text[], result_ids text[], result_claims text[], result_tries bigint[],
  result_reasons text[], contents text[], body_digests text[], event_digests text[], answers text[],
  bodies bytea[], mine boolean
) returns table (
  turn json, id text, owner_id text, event_id text, webhook_id text, origin text, tries bigint,
  attempts bigint, retry boolean, ordered boolean, sequence bigint, repeats bigint, lag_us bigint,
  name text, record_id text, record_version bigint, occurred_at bigint, request_id text,
  traceparent text, body_digest text, about_id text, erased_at bigint, size bigint, body bytea
) language plpgsql set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  -- The wall clock, and the due clock, which stands still during a statement of the caller.
  moment constant bigint := cast(plan ->> 'now' as bigint);
  due constant bigint := due_now();
  step constant bigint := cast(plan ->> 'step' as bigint);
  token constant text := plan ->> 'claim';
  node constant text := plan ->> 'node';
  windows constant json := plan -> 'windows';
  hooks constant text[] := array(select value ->> 0 from json_array_elements(plan -> 'health'));
  slots bigint := cast(plan ->> 'slots' as bigint);
  settled text := 'none';
  claimed text := 'none';
  fanned text := 'none';
  noted boolean := false;
  total bigint;
  odd boolean;
  one record;
  hook text := '';
  hook_number integer;
  chain_end bigint;
  chain_link bytea;
  result_places bigint[] := '{}';
  result_links bytea[] := '{}';
  hook_places bigint[] := '{}';
  hook_links text[] := '{}';
  due_hooks text[];
  due_rooms bigint[];
  due_got bigint[] := '{}';
  part text[];
  taken text[] := '{}';
  event_places bigint[];
  event_owners text[];
  event_names text[];
  first_seq bigint;
  waiting text[] := '{}';
  free text[] := '{}';
begin
  -- Settle all of the results or none, so that what the caller has counted is right.
  if cardinality(hooks) > 0 then
    select count(*) into total from (
      select 1 from lanes l join webhooks w on w.id = l.webhook_id
      where l.webhook_id = any (hooks) and w.circuit = 'closed'
      order by l.webhook_id for update of l, w skip locked) as locked;
    if total < cardinality(hooks) then
      turn := json_build_object('settled', 'parts');
      return next;
      return;
    end if;
    settled := 'done';
    update deliveries set state = 'delivered', reason = s.reason, retry = retry or s.tries > 0,
      next_at = due, tries = s.tries, rescues = 0, claim = null, node_id = null,
      finished_at = moment, last_outcome = 'success', last_status = s.status
    from (
      select r.id, r.token, r.tries, r.reason,
        cast(cast(r.content as json) ->> 7 as bigint) as status
      from unnest(result_ids, result_claims, result_tries, result_reasons, contents)
        as r (id, token, tries, reason, content)) as s
    where deliveries.id = s.id and deliveries.claim = s.token and not deliveries.ordered;
    get diagnostics total = row_count;
    if total < cardinality(result_ids) then
      raise exception 'a delivery is no longer claimed' using errcode = 'CAR02';
    end if;
    -- The digests of outbox.queue.state.chain, which continue the end of each chain.
    for one in
      select r.hook, r.number, r.content, r.body_digest, r.event_digest, l.chain_place, l.chain_digest
      from unnest(result_hooks, contents, body_digests, event_digests)
        with ordinality as r (hook, content, body_digest, event_digest, number)
      join lanes l on l.webhook_id = r.hook order by r.hook, r.number
    loop
      if one.hook <> hook then
        hook := one.hook;
        hook_number := array_position(hooks, hook);
        chain_end := one.chain_place;
        chain_link := decode(one.chain_digest, 'hex');
      end if;
      chain_end := chain_end + 1;
      chain_link := sha256(chain_link || convert_to(left(one.content, -1) || ',' || chain_end || ',"'
        || one.body_digest || '","' || one.event_digest || '","delivered"]', 'UTF8'));
      result_places[one.number] := chain_end;
      result_links[one.number] := chain_link;
      hook_places[hook_number] := chain_end;
      hook_links[hook_number] := encode(chain_link, 'hex');
    end loop;
    insert into attempts (owner_id, delivery_id, webhook_id, event_id, number, kind, outcome, status,
      error, started_at, dns_us, connect_us, tls_us, first_byte_us, total_us, address, url,
      request_headers, response_headers, response_body, truncated, node_id, place, body_digest,
      event_digest, state, digest)
    select c[1], c[2], c[3], c[4], cast(c[5] as bigint), c[6], c[7], cast(c[8] as bigint), c[9],
      cast(c[10] as bigint), cast(c[11] as bigint), cast(c[12] as bigint), cast(c[13] as bigint),
      cast(c[14] as bigint), cast(c[15] as bigint), c[16], c[17], c[18], r.answer, r.body,
      cast(c[20] as boolean), c[21], r.place, decode(r.body_digest, 'hex'),
      decode(r.event_digest, 'hex'), 'delivered', r.link
    from unnest(contents, body_digests, event_digests, answers, bodies, result_places, result_links)
      as r (content, body_digest, event_digest, answer, body, place, link)
    cross join lateral (
      -- The offset keeps it one evaluation: without it each column would be parsed anew.
      select array(select json_array_elements_text(cast(r.content as json))) as c offset 0
    ) as columns;
    insert into figures (span, subject_id, at, result, count, total_us,
      t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13)
    select step, value ->> 0, cast(value ->> 1 as bigint), value ->> 2, cast(value ->> 3 as bigint),
      cast(value ->> 4 as bigint), cast(value ->> 5 as integer), cast(value ->> 6 as integer),
      cast(value ->> 7 as integer), cast(value ->> 8 as integer), cast(value ->> 9 as integer),
      cast(value ->> 10 as integer), cast(value ->> 11 as integer), cast(value ->> 12 as integer),
      cast(value ->> 13 as integer), cast(value ->> 14 as integer), cast(value ->> 15 as integer),
      cast(value ->> 16 as integer), cast(value ->> 17 as integer), cast(value ->> 18 as integer)
    from json_array_elements(plan -> 'figures')
    on conflict (subject_id, at, span, result) do update set
      count = figures.count + excluded.count, total_us = figures.total_us + excluded.total_us,
      t0 = figures.t0 + excluded.t0, t1 = figures.t1 + excluded.t1, t2 = figures.t2 + excluded.t2,
      t3 = figures.t3 + excluded.t3, t4 = figures.t4 + excluded.t4, t5 = figures.t5 + excluded.t5,
      t6 = figures.t6 + excluded.t6, t7 = figures.t7 + excluded.t7, t8 = figures.t8 + excluded.t8,
      t9 = figures.t9 + excluded.t9, t10 = figures.t10 + excluded.t10,
      t11 = figures.t11 + excluded.t11, t12 = figures.t12 + excluded.t12,
      t13 = figures.t13 + excluded.t13;
    update webhooks set last_attempt_at = moment, last_outcome = 'success', last_status = s.status,
      unreadable = null, last_success_at = moment, failing_since = null, failures = 0,
      failed_events = null
    from (
      select value ->> 0 as hook, cast(value ->> 1 as bigint) as status
      from json_array_elements(plan -> 'health')) as s
    where webhooks.id = s.hook;
    update lanes set failing = false, failing_from = null, chain_place = s.place,
      chain_digest = s.link, due_at = (
          select case when soonest is null then null
            when lanes.wait_until > due and lanes.rate_until < lanes.wait_until
            then coalesce((
            select case when min(d.next_at) is not null then  greatest(
              min(d.next_at), lanes.rate_until, lanes.turned_at) end
            from passes p join deliveries d on d.id = p.delivery_id
            where p.webhook_id = lanes.webhook_id and p.pauses and d.state = 'ready'
              and d.next_at < lanes.wait_until),  greatest(
            case when lanes.probe_at is null or soonest >= lanes.probe_at then soonest
              else coalesce((
                select min(d.next_at) from passes p join deliveries d on d.id = p.delivery_id
                where p.webhook_id = lanes.webhook_id and d.state = 'ready'
                  and d.next_at < lanes.probe_at), lanes.probe_at) end,
            lanes.wait_until, lanes.turned_at)) else  greatest(
            case when lanes.probe_at is null or soonest >= lanes.probe_at then soonest
              else coalesce((
                select min(d.next_at) from passes p join deliveries d on d.id = p.delivery_id
                where p.webhook_id = lanes.webhook_id and d.state = 'ready'
                  and d.next_at < lanes.probe_at), lanes.probe_at) end,
            lanes.wait_until, lanes.turned_at) end
          from (
            select min(next_at) as soonest from (
              select * from (
                select next_at from deliveries
                where webhook_id = lanes.webhook_id and state = 'ready' and retry = false
                order by next_at limit 1
              ) as firsts
              union all
              select * from (
                select next_at from deliveries
                where webhook_id = lanes.webhook_id and state = 'ready' and retry = true
                order by next_at limit 1
              ) as retries
            ) as heads
          ) as head)
    from unnest(hooks, hook_places, hook_links) as s (hook, place, link)
    where lanes.webhook_id = s.hook;
  end if;

  -- Claim where each due lane gets its whole window, so that nobody has to wait for a turn. The
  -- caller names the windows of all webhooks with a request in flight; each other one has room.
  if windows is not null then
    select array_agg(l.hook), array_agg(l.room), bool_or(l.odd), coalesce(sum(l.room), 0)
    into due_hooks, due_rooms, odd, total
    from (
      select webhook_id as hook, greatest(coalesce(cast(windows ->> webhook_id as bigint), 1), 0)
          as room, probe_at is not null or wait_until > due or concurrency is not null
          or rate is not null as odd
      from lanes where active and due_at is not null and failing = false and due_at <= due
      order by due_at limit 17 for update skip locked) as l;
    if odd or total > slots or cardinality(due_hooks) > 16 or exists (
      select 1 from lanes where active and due_at is not null and failing = true and due_at <= due)
    then
      claimed := 'parts';
    elsif due_hooks is not null then
      claimed := 'done';
      for line in 1 .. cardinality(due_hooks) loop
        part := '{}';
        if due_rooms[line] > 0 then
          with chosen as (
            update deliveries set state = 'in_flight', claim = token, node_id = node,
              attempts = case when attempts < 1000000 then attempts + 1 else attempts end
            where id = any (array(
              select id from (
                select firsts.id, firsts.next_at, 1 as rank from (
                  select id, next_at from deliveries
                  where webhook_id = due_hooks[line] and state = 'ready' and retry = false
                    and next_at <= due
                  order by next_at limit due_rooms[line] for update skip locked) as firsts
                union all
                select retries.id, retries.next_at,
                  case when row_number() over (order by retries.next_at) <= (
                    select (served + due_rooms[line]) / 4 - served / 4
                    from lanes where webhook_id = due_hooks[line]) then 0 else 2 end
                from (
                  select id, next_at from deliveries
                  where webhook_id = due_hooks[line] and state = 'ready' and retry = true
                    and next_at <= due
                  order by next_at limit due_rooms[line] for update skip locked) as retries
              ) as ready order by rank, next_at limit due_rooms[line]))
            returning id)
          select coalesce(array_agg(id), '{}') into part from chosen;
        end if;
        taken := taken || part;
        due_got := due_got || cast(cardinality(part) as bigint);
      end loop;
      slots := slots - cardinality(taken);
      -- A lane whose window is full is due again after one of its sends is recorded.
      update lanes set turned_at = due, served = served + s.got,
        due_at = due + case when s.got < s.room then 0 else 30000000 end
      from unnest(due_hooks, due_rooms, due_got) as s (hook, room, got)
      where lanes.webhook_id = s.hook;
      update lanes set due_at = (
          select case when soonest is null then null
            when lanes.wait_until > due and lanes.rate_until < lanes.wait_until
            then coalesce((
            select case when min(d.next_at) is not null then  greatest(
              min(d.next_at), lanes.rate_until, lanes.turned_at) end
            from passes p join deliveries d on d.id = p.delivery_id
            where p.webhook_id = lanes.webhook_id and p.pauses and d.state = 'ready'
              and d.next_at < lanes.wait_until),  greatest(
            case when lanes.probe_at is null or soonest >= lanes.probe_at then soonest
              else coalesce((
                select min(d.next_at) from passes p join deliveries d on d.id = p.delivery_id
                where p.webhook_id = lanes.webhook_id and d.state = 'ready'
                  and d.next_at < lanes.probe_at), lanes.probe_at) end,
            lanes.wait_until, lanes.turned_at)) else  greatest(
            case when lanes.probe_at is null or soonest >= lanes.probe_at then soonest
              else coalesce((
                select min(d.next_at) from passes p join deliveries d on d.id = p.delivery_id
                where p.webhook_id = lanes.webhook_id and d.state = 'ready'
                  and d.next_at < lanes.probe_at), lanes.probe_at) end,
            lanes.wait_until, lanes.turned_at) end
          from (
            select min(next_at) as soonest from (
              select * from (
                select next_at from deliveries
                where webhook_id = lanes.webhook_id and state = 'ready' and retry = false
                order by next_at limit 1
              ) as firsts
              union all
              select * from (
                select next_at from deliveries
                where webhook_id = lanes.webhook_id and state = 'ready' and retry = true
                order by next_at limit 1
              ) as retries
            ) as heads
          ) as head)
      from unnest(due_hooks, due_rooms, due_got) as s (hook, room, got)
      where lanes.webhook_id = s.hook and s.got < s.room;
    end if;
  end if;

  -- Fan out where nothing is left of earlier rounds, and the webhooks have neither conditions, an
  -- order nor numbers. The caller has the lock of fan-out if this is `mine`; null: it did not ask.
  if mine and windows is not null then
    select array_agg(e.pos order by e.pos), bool_or(e.webhook_id is not null),
      array_agg(distinct e.owner_id), array_agg(distinct '"' || e.name || '"')
    into event_places, odd, event_owners, event_names
    from (
      select pos, webhook_id, owner_id, name from events where seq is null order by pos limit 256
    ) as e;
    if event_places is not null and not odd then
      select bool_or(w.odd), count(*) into odd, total from (
        select events !~ '^\[("[a-z._]+"(, ?"[a-z._]+")*)?\]$'
          or (conditions is not null or ordered or sequenced) and exists (
            select 1 from unnest(event_names) as one where position(one in events) > 0) as odd
        from webhooks where owner_id = any (event_owners) limit 65) as w;
      odd := coalesce(odd, false) or total > 64 or cardinality(event_places) * total > 1024;
    end if;
    if odd or exists (select 1 from remainders) then
      fanned := 'parts';
      event_places := null;
    elsif event_places is not null then
      fanned := 'done';
    end if;
  elsif mine is not null then
    fanned := case when mine then 'parts' else 'away' end;
  end if;
  if event_places is not null then
    update outbox_state set seq = seq + cardinality(event_places) where id = 1
    returning seq - cardinality(event_places) into first_seq;
    update events set seq = first_seq + s.number
    from unnest(event_places) with ordinality as s (place, number) where events.pos = s.place;
    with listed as (
      select w.id as hook, w.owner_id, w.events,
        case when w.since_snapshot ~ '^\d{1,20}:\d{1,20}:(\d{1,20}(,\d{1,20})*)?$'
          then cast(w.since_snapshot as pg_snapshot) end as since,
        case when w.state = 'active' and l.failing = false and l.wait_until <= due
          and l.concurrency is null and l.rate is null
          and not exists (select 1 from deliveries d where d.webhook_id = w.id and d.state = 'ready'
            and d.retry = false and d.next_at <= due)
          and not exists (select 1 from deliveries d where d.webhook_id = w.id and d.state = 'ready'
            and d.retry = true and d.next_at <= due)
        then coalesce(cast(windows ->> w.id as bigint), 1)
          - coalesce(due_got[array_position(due_hooks, w.id)], 0) else 0 end as room
      from webhooks w join lanes l on l.webhook_id = w.id where w.owner_id = any (event_owners)
    ), pairs as (
      select e.pos, e.id as event_id, e.owner_id, e.record_id, e.seq, w.hook, w.room,
        row_number() over each_hook as nth,
        bool_and(coalesce(length(e.body) <= 4096, false)) over each_hook as small
      from unnest(event_places) as p (pos) join events e on e.pos = p.pos
      join listed w on w.owner_id = e.owner_id and position('"' || e.name || '"' in w.events) > 0
        and (w.since is null or not pg_visible_in_snapshot(e.xid, w.since))
      window each_hook as (partition by w.hook order by e.pos rows unbounded preceding)
    ), ranked as (
      select *, row_number() over every_pair as number, small and nth <= room
        and count(*) filter (where small and nth <= room) over every_pair <= slots as at_once
      from pairs window every_pair as (order by pos, hook rows unbounded preceding)
    ), made as (
      insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at,
        tries, attempts, claim, node_id, record_id, seq, created_at)
      select left(plan ->> 'id', 12) || lpad(to_hex(
          (cast(cast('x' || right(plan ->> 'id', 12) as bit(48)) as bigint) & 140737488355327)
          + r.number * 4294967296
          + cast(cast('x' || left(cast(gen_random_uuid() as text), 8) as bit(32)) as bigint)
        ), 12, '0'), r.owner_id, r.event_id, r.hook, 'event',
        case when r.at_once then 'in_flight' else 'ready' end, false, due + r.nth - 1, 0,
        cast(r.at_once as integer), case when r.at_once then token end,
        case when r.at_once then node end, r.record_id, r.seq, moment
      from ranked r order by r.number
      on conflict (event_id, webhook_id) where origin = 'event' do nothing
      returning id, webhook_id, state)
    select taken || coalesce(array_agg(made.id) filter (where made.state = 'in_flight'), '{}'),
      coalesce(array_agg(distinct made.webhook_id) filter (where made.state = 'ready'), '{}')
    into taken, waiting from made;
    if cardinality(waiting) > 0 then
      select coalesce(array_agg(locked.hook), '{}') into free from (
        select l.webhook_id as hook from lanes l join webhooks w on w.id = l.webhook_id
        where l.webhook_id = any (waiting)
        order by l.webhook_id for update of l, w skip locked) as locked;
      update lanes set due_at = case
          when due_at is not null and due_at <= due then due_at
          when wait_until > due then case when rate_until < wait_until and exists (
              select 1 from passes p where p.webhook_id = lanes.webhook_id and p.pauses)
            then  greatest(rate_until, turned_at, due - 1000000)
            else wait_until end
          when probe_at > due and not exists (select 1 from passes p where p.webhook_id = lanes.webhook_id)
            then probe_at
          else  greatest(turned_at, due - 1000000) end where webhook_id = any (free);
      insert into wakes (webhook_id)
      select webhook_id from lanes
      where webhook_id = any (waiting) and webhook_id <> all (free);
      noted := found;
    end if;
    insert into figures (span, subject_id, at, result, count, total_us,
      t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13)
    select step, e.owner_id, e.occurred_at / step * step, 'event', count(*), 0,
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
    from unnest(event_places) as p (pos) join events e on e.pos = p.pos
    group by 2, 3 order by 2, 3
    on conflict (subject_id, at, span, result) do update set
      count = figures.count + excluded.count;
  end if;

  -- What was done, and in how many microseconds a lane is due.
  select min(heads.due_at) - due into total from (
    select * from (select due_at from lanes where active and due_at is not null and failing = false
      order by due_at limit 1) as healthy
    union all
    select * from (select due_at from lanes where active and due_at is not null and failing = true
      order by due_at limit 1) as failing
  ) as heads;
  turn := json_build_object(
    'settled', settled, 'claimed', claimed, 'waited', coalesce((
      select sum(got) from unnest(due_got) as g (got)), 0) > 0,
    'fanned', fanned, 'noted', noted, 'wait', total,
    'more', coalesce(cardinality(event_places) = 256, false),
    'waiting', case when cardinality(waiting) > 0 then (
      select json_agg(json_build_array(w.id, w.owner_id)) from webhooks w where w.id = any (waiting))
      end,
    'events', case when event_places is not null then (
      select json_agg(json_build_array(e.id, e.name, e.record_id, e.request_id, e.traceparent, e.seq,
        (select count(*) from deliveries d where d.event_id = e.id and d.origin = 'event'))
        order by e.pos)
      from unnest(event_places) as p (pos) join events e on e.pos = p.pos) end,
    'webhooks', case when cardinality(taken) > 0 then (
      select json_agg(json_build_array(w.id, w.version, w.url, w.timeout_ms, w.schedule,
        encode(w.headers, 'hex'), encode(w.secret, 'hex'), encode(w.staged_secret, 'hex'),
        encode(w.old_secret, 'hex'), w.old_secret_until, w.failures, case when w.ed25519 then coalesce((
            select  string_agg(line, ' ') from (
              select id || ':' ||  encode(private_key, 'hex') as line
              from signing_keys where private_key is not null
              order by ends_at is not null, created_at desc) as keys), '') end,
        encode(w.certificate, 'hex'), w.proxy, w.thin))
      from webhooks w where w.id in (
        select d.webhook_id from deliveries d where d.id = any (taken))) end);
  return next;
  return query
  select cast(null as json), d.id, d.owner_id, d.event_id, d.webhook_id, d.origin, d.tries,
    d.attempts, d.retry, d.ordered, d.sequence, d.repeats, due - greatest(d.next_at, l.wait_until),
    e.name, e.record_id, e.record_version, e.occurred_at, e.request_id, e.traceparent,
    e.body_digest, e.about_id, e.erased_at, cast(length(e.body) as bigint),
    case when length(e.body) <= 65536 then e.body end
  from unnest(taken) as t (id) join deliveries d on d.id = t.id
  join events e on e.id = d.event_id join lanes l on l.webhook_id = d.webhook_id
  order by d.retry, d.next_at;
end $$;
*/
