CREATE FUNCTION public.count_deals() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  insert into deal_totals as kept (owner_id, stage, status, slot, n, value)
  select owner_id, stage, status, slot, sum(n), sum(value) from (
    select old.owner_id, coalesce(old.stage, ''), old.status, right(old.id, 1), -1, -old.value
    where tg_op <> 'INSERT'
    union all
    select new.owner_id, coalesce(new.stage, ''), new.status, right(new.id, 1), 1, new.value
    where tg_op <> 'DELETE'
  ) as moved (owner_id, stage, status, slot, n, value)
  group by owner_id, stage, status, slot
  order by owner_id, stage, status, slot
  on conflict (owner_id, stage, status, slot)
  do update set n = kept.n + excluded.n, value = kept.value + excluded.value;
  if tg_op <> 'INSERT' then
    delete from deal_totals
    where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
      and slot = right(old.id, 1) and n = 0;
  end if;
  return null;
end
$$;
CREATE FUNCTION public.due_now() RETURNS bigint
    LANGUAGE sql STABLE
    AS $$ select cast(extract(epoch from statement_timestamp()) * 1000000 as bigint) $$;
CREATE TABLE public.activities (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    type text NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL,
    related_id text NOT NULL COLLATE pg_catalog."C",
    related_type text NOT NULL COLLATE pg_catalog."C",
    metadata text,
    created_by text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.api_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    visible text NOT NULL,
    digest bytea NOT NULL,
    scopes text NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint,
    created_at bigint NOT NULL
);
CREATE TABLE public.attempts (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    delivery_id text NOT NULL COLLATE pg_catalog."C",
    webhook_id text NOT NULL COLLATE pg_catalog."C",
    event_id text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    kind text NOT NULL,
    outcome text NOT NULL,
    status bigint,
    error text,
    started_at bigint NOT NULL,
    dns_us bigint,
    connect_us bigint,
    tls_us bigint,
    first_byte_us bigint,
    total_us bigint NOT NULL,
    address text,
    url text NOT NULL,
    request_headers text NOT NULL,
    response_headers text,
    response_body bytea,
    truncated boolean NOT NULL,
    node_id text NOT NULL,
    CONSTRAINT attempts_kind_check CHECK ((kind = ANY (ARRAY['event'::text, 'replay'::text, 'test'::text, 'probe'::text])))
);
CREATE TABLE public.companies (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    name text NOT NULL,
    cnpj text,
    cnpj_normal text COLLATE pg_catalog."C",
    website text,
    industry text,
    size text,
    email text,
    phone text,
    phone_e164 text,
    notes text,
    folded text NOT NULL COLLATE pg_catalog."C",
    sort_name text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.contact_tags (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.contacts (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    name text NOT NULL,
    email text,
    phone text,
    phone_e164 text,
    "position" text,
    notes text,
    company_id text COLLATE pg_catalog."C",
    tags text NOT NULL,
    source text NOT NULL,
    consent boolean,
    folded text NOT NULL COLLATE pg_catalog."C",
    sort_name text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.counters (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    series text NOT NULL COLLATE pg_catalog."C",
    n bigint NOT NULL
);
CREATE TABLE public.deal_contacts (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.deal_totals (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    stage text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    slot text NOT NULL COLLATE pg_catalog."C",
    n bigint NOT NULL,
    value bigint NOT NULL
);
CREATE TABLE public.deals (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    title text NOT NULL,
    value bigint NOT NULL,
    currency text NOT NULL,
    stage text COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    probability bigint,
    company_id text COLLATE pg_catalog."C",
    contact_ids text NOT NULL,
    expected_close_at bigint,
    expected_close_day boolean,
    closed_at bigint,
    lost_reason text
);
CREATE TABLE public.deliveries (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    event_id text NOT NULL COLLATE pg_catalog."C",
    webhook_id text NOT NULL COLLATE pg_catalog."C",
    origin text NOT NULL,
    state text NOT NULL,
    reason text,
    retry boolean NOT NULL,
    next_at bigint NOT NULL,
    tries bigint NOT NULL,
    attempts bigint NOT NULL,
    claim text,
    node_id text,
    record_id text NOT NULL,
    seq bigint NOT NULL,
    created_at bigint NOT NULL,
    finished_at bigint,
    last_outcome text,
    last_status bigint,
    replayed_by text,
    rescues bigint DEFAULT 0 NOT NULL,
    CONSTRAINT deliveries_origin_check CHECK ((origin = ANY (ARRAY['event'::text, 'replay'::text, 'test'::text]))),
    CONSTRAINT deliveries_state_check CHECK ((state = ANY (ARRAY['ready'::text, 'in_flight'::text, 'held'::text, 'delivered'::text, 'exhausted'::text, 'gone'::text, 'cancelled'::text, 'dead'::text])))
);
CREATE TABLE public.duties (
    name text NOT NULL COLLATE pg_catalog."C",
    began_at bigint NOT NULL,
    ended_at bigint
);
CREATE TABLE public.events (
    pos bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    seq bigint,
    owner_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    record_id text NOT NULL,
    record_version bigint NOT NULL,
    webhook_id text,
    occurred_at bigint NOT NULL,
    request_id text,
    traceparent text,
    body bytea,
    body_digest text NOT NULL,
    erased_at bigint,
    xid xid8 DEFAULT pg_current_xact_id()
);
ALTER TABLE public.events ALTER COLUMN pos ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_pos_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.first_account_links (
    digest bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.idempotency (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    method text NOT NULL COLLATE pg_catalog."C",
    path text NOT NULL COLLATE pg_catalog."C",
    fingerprint bytea NOT NULL,
    status bigint,
    headers text,
    body bytea,
    created_at bigint NOT NULL
);
CREATE TABLE public.invoices (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    number text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    items text NOT NULL,
    subtotal bigint NOT NULL,
    discount bigint NOT NULL,
    shipping bigint NOT NULL,
    total bigint NOT NULL,
    currency text NOT NULL,
    due_at bigint NOT NULL,
    due_day boolean NOT NULL,
    paid_at bigint,
    method text COLLATE pg_catalog."C",
    reference text,
    canceled_at bigint,
    reason text,
    contact_id text COLLATE pg_catalog."C",
    company_id text COLLATE pg_catalog."C",
    deal_id text COLLATE pg_catalog."C",
    quote_id text COLLATE pg_catalog."C",
    order_id text COLLATE pg_catalog."C",
    notes text
);
CREATE TABLE public.lanes (
    webhook_id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    active boolean NOT NULL,
    failing boolean NOT NULL,
    due_at bigint,
    wait_until bigint DEFAULT 0 NOT NULL,
    turned_at bigint DEFAULT 0 NOT NULL,
    served bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.nodes (
    id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    started_at bigint NOT NULL,
    alive_until bigint NOT NULL
);
CREATE TABLE public.outbox_state (
    id bigint NOT NULL,
    seq bigint NOT NULL,
    due_mark bigint NOT NULL,
    CONSTRAINT outbox_state_id_check CHECK ((id = 1))
);
CREATE TABLE public.pipelines (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    stages text NOT NULL,
    strict boolean NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE public.product_categories (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.product_skus (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.products (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    name text NOT NULL,
    description text,
    sku text COLLATE pg_catalog."C",
    slug text COLLATE pg_catalog."C",
    price bigint NOT NULL,
    compare_at_price bigint,
    currency text NOT NULL,
    stock bigint,
    weight_grams bigint,
    categories text NOT NULL,
    images text NOT NULL,
    active boolean NOT NULL,
    published boolean NOT NULL,
    store_id text COLLATE pg_catalog."C",
    folded text NOT NULL COLLATE pg_catalog."C",
    sort_name text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.quotes (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    number text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    items text NOT NULL,
    subtotal bigint NOT NULL,
    discount bigint NOT NULL,
    total bigint NOT NULL,
    currency text NOT NULL,
    contact_id text COLLATE pg_catalog."C",
    company_id text COLLATE pg_catalog."C",
    deal_id text COLLATE pg_catalog."C",
    valid_until bigint,
    valid_day boolean,
    lapses_at bigint,
    sent_at bigint,
    accepted_at bigint,
    rejected_at bigint,
    invoice_id text COLLATE pg_catalog."C",
    notes text
);
CREATE TABLE public.schema_migrations (
    component text NOT NULL,
    number bigint NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at bigint NOT NULL
);
CREATE TABLE public.sessions (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    address text NOT NULL,
    agent text NOT NULL,
    created_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    reveal bytea
);
CREATE TABLE public.tallies (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    slot bigint NOT NULL,
    n bigint NOT NULL
);
CREATE TABLE public.tasks (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    title text NOT NULL,
    description text,
    due_at bigint,
    due_day boolean,
    priority text NOT NULL COLLATE pg_catalog."C",
    completed boolean NOT NULL,
    completed_at bigint,
    contact_id text COLLATE pg_catalog."C",
    deal_id text COLLATE pg_catalog."C"
);
CREATE TABLE public.tokens (
    digest bytea NOT NULL,
    owner_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.users (
    id text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL,
    folded_email text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    password_hash text NOT NULL,
    timezone text DEFAULT 'America/Sao_Paulo'::text NOT NULL,
    disabled_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version bigint DEFAULT 1 NOT NULL
);
CREATE TABLE public.wakes (
    webhook_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.webhooks (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    url text NOT NULL,
    events text NOT NULL,
    description text,
    state text NOT NULL,
    disabled_reason text,
    ordered boolean NOT NULL,
    timeout_ms bigint,
    schedule text,
    headers bytea,
    secret bytea NOT NULL,
    staged_secret bytea,
    old_secret bytea,
    old_secret_until bigint,
    since_pos bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    last_success_at bigint,
    failing_since bigint,
    failures bigint DEFAULT 0 NOT NULL,
    last_outcome text,
    last_status bigint,
    last_attempt_at bigint,
    circuit text DEFAULT 'closed'::text NOT NULL,
    circuit_opened_at bigint,
    circuit_backoff bigint,
    since_snapshot text,
    CONSTRAINT webhooks_circuit_check CHECK ((circuit = ANY (ARRAY['closed'::text, 'open'::text, 'half_open'::text]))),
    CONSTRAINT webhooks_state_check CHECK ((state = ANY (ARRAY['active'::text, 'paused'::text, 'disabled'::text])))
);
INSERT INTO public.api_keys VALUES ('01a209621487c6b22cf994cc', '01a20961fcb451ae030aa06d', 'upgrade', 'crt_dH4NxW4S', '\xc5a5933298905c68f515d0fc2ad2a647ea2cd379b5b4c5b4f00b705c1d274308', '["read","write"]', NULL, 1795453754445795, NULL, 1795453752455671);
INSERT INTO public.attempts VALUES ('01a20961fcb451ae030aa06d', '01a209621c34c6bdb153c96a', '01a209621b6069302ff34342', '01a209621c2aae291f2df27d', 1, 'event', 'success', 200, NULL, 1795453754441634, NULL, 931, NULL, 1902, 3627, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453754"],["X-Webhook-Signature","sha256=29a1af86ffb34057cebdfac7ea12982ff2a71b04885513094c529545e2d08bb2"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209621c2aae291f2df27d"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a209621c2aae291f2df27d"],["webhook-timestamp","1795453754"],["webhook-signature","v1,HD87qouRjOaUMx+xemZ1XLNkDsbdLUJedJl89jQhgM8="],["traceparent","00-2894769abd855117a21b7568ca96d494-b94557deb8433152-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:09:14 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20961e636268341a5dcc9');
INSERT INTO public.attempts VALUES ('01a20961fcb451ae030aa06d', '01a209621c6c3c502fa1f37f', '01a209621b6069302ff34342', '01a209621c4e5753afab9611', 1, 'event', 'http_5xx', 500, NULL, 1795453754484623, NULL, NULL, NULL, 717, 993, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453754"],["X-Webhook-Signature","sha256=7d1f0e8df45479d6e6d50c9dadf5eea47c505ab1a4a92c2334ce8c5278c58497"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209621c4e5753afab9611"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a209621c4e5753afab9611"],["webhook-timestamp","1795453754"],["webhook-signature","v1,hqhaSC3l2j2FdsQL2LLCrNWUq/EqIXHhZdd3tbvUO4I="],["traceparent","00-3a3be7c3769628d78c8746ffb5f7e946-15de4693cf0e4644-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:09:14 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20961e636268341a5dcc9');
INSERT INTO public.attempts VALUES ('01a20961fcb451ae030aa06d', '01a209621c6c3c502fa1f37f', '01a209621b6069302ff34342', '01a209621c4e5753afab9611', 2, 'event', 'http_5xx', 500, NULL, 1795453754625348, NULL, NULL, NULL, 2717, 3175, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453754"],["X-Webhook-Signature","sha256=7d1f0e8df45479d6e6d50c9dadf5eea47c505ab1a4a92c2334ce8c5278c58497"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209621c4e5753afab9611"],["X-Webhook-Attempt","2"],["X-Webhook-Record-Version","1"],["webhook-id","01a209621c4e5753afab9611"],["webhook-timestamp","1795453754"],["webhook-signature","v1,hqhaSC3l2j2FdsQL2LLCrNWUq/EqIXHhZdd3tbvUO4I="],["traceparent","00-3a3be7c3769628d78c8746ffb5f7e946-dee08bd29bb6cd15-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:09:14 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20961e636268341a5dcc9');
INSERT INTO public.attempts VALUES ('01a20961fcb451ae030aa06d', '01a209623e311ab4b483dc35', '01a209621b6069302ff34342', '01a209623e1ed208a70eee56', 1, 'event', 'http_5xx', 500, NULL, 1795453763240695, NULL, 4877, NULL, 6125, 12122, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453763"],["X-Webhook-Signature","sha256=ca44fe7d8d0451ef1ebaa91fb9c48553cfe3aeac8eeb547c4eb3e0100cbe1814"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209623e1ed208a70eee56"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a209623e1ed208a70eee56"],["webhook-timestamp","1795453763"],["webhook-signature","v1,ikm1AMyQ8WunBY380FqzdkBYJjEAxzd8MjKLOpAh/5A="],["traceparent","00-a8986e291b83295f92aa67ac6b474533-a97a608fdbac9592-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:09:23 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a209623d7c58845f5ad160');
INSERT INTO public.contacts VALUES ('01a209621c2ac1225c176a52', '01a20961fcb451ae030aa06d', 1, 1795453754410607, NULL, 'Delivered', 'delivered@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'delivereddelivered@example.com', 'delivered');
INSERT INTO public.contacts VALUES ('01a209621c4e069cecdc552f', '01a20961fcb451ae030aa06d', 1, 1795453754446395, NULL, 'Exhausted', 'exhausted@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'exhaustedexhausted@example.com', 'exhausted');
INSERT INTO public.contacts VALUES ('01a209623e1e7c8894241de3', '01a20961fcb451ae030aa06d', 1, 1795453763102564, NULL, 'Waiting', 'waiting@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'waitingwaiting@example.com', 'waiting');
INSERT INTO public.contacts VALUES ('01a209623eb72b5928cffe00', '01a20961fcb451ae030aa06d', 1, 1795453763255638, NULL, 'Hanging', 'hanging@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'hanginghanging@example.com', 'hanging');
INSERT INTO public.contacts VALUES ('01a209623f1368283a95f6e0', '01a20961fcb451ae030aa06d', 1, 1795453763347163, NULL, 'Unclaimed', 'unclaimed@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'unclaimedunclaimed@example.com', 'unclaimed');
INSERT INTO public.deliveries VALUES ('01a209621c34d1997f6564bd', '01a20961fcb451ae030aa06d', '01a209621c2aae291f2df27d', '01a209621be719cf804c026b', 'event', 'ready', NULL, false, 1795453754428345, 0, 0, NULL, NULL, '01a209621c2ac1225c176a52', 1, 1795453754420154, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209621c34c6bdb153c96a', '01a20961fcb451ae030aa06d', '01a209621c2aae291f2df27d', '01a209621b6069302ff34342', 'event', 'delivered', 'success', true, 1795453754456861, 1, 1, NULL, NULL, '01a209621c2ac1225c176a52', 1, 1795453754420154, 1795453754451674, 'success', 200, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209621c6c36fb24e12e3a', '01a20961fcb451ae030aa06d', '01a209621c4e5753afab9611', '01a209621be719cf804c026b', 'event', 'ready', NULL, false, 1795453754478346, 0, 0, NULL, NULL, '01a209621c4e069cecdc552f', 2, 1795453754476546, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209621c6c3c502fa1f37f', '01a20961fcb451ae030aa06d', '01a209621c4e5753afab9611', '01a209621b6069302ff34342', 'event', 'exhausted', 'http_5xx', true, 1795453754632815, 2, 2, NULL, NULL, '01a209621c4e069cecdc552f', 2, 1795453754476546, 1795453754631916, 'http_5xx', 500, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209623e315188eb62fbfd', '01a20961fcb451ae030aa06d', '01a209623e1ed208a70eee56', '01a209621be719cf804c026b', 'event', 'ready', NULL, false, 1795453763175193, 0, 0, NULL, NULL, '01a209623e1e7c8894241de3', 3, 1795453763121878, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209623e311ab4b483dc35', '01a20961fcb451ae030aa06d', '01a209623e1ed208a70eee56', '01a209621b6069302ff34342', 'event', 'ready', 'http_5xx', true, 1795453819899703, 1, 1, NULL, NULL, '01a209623e1e7c8894241de3', 3, 1795453763121878, NULL, 'http_5xx', 500, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209623ecfeb490ff4f5ff', '01a20961fcb451ae030aa06d', '01a209623eb7bec206a9b389', '01a209621be719cf804c026b', 'event', 'ready', NULL, false, 1795453763299777, 0, 0, NULL, NULL, '01a209623eb72b5928cffe00', 4, 1795453763279439, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209623ecf78cc820bc60f', '01a20961fcb451ae030aa06d', '01a209623eb7bec206a9b389', '01a209621b6069302ff34342', 'event', 'in_flight', NULL, false, 1795453763299777, 0, 1, '01a209623d7c58845f5ad160-6', '01a209623d7c58845f5ad160', '01a209623eb72b5928cffe00', 4, 1795453763279439, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209623f1fb0e919d8f79c', '01a20961fcb451ae030aa06d', '01a209623f133404db1fb65e', '01a209621b6069302ff34342', 'event', 'ready', NULL, false, 1795453763370744, 0, 0, NULL, NULL, '01a209623f1368283a95f6e0', 5, 1795453763359631, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209623f1fb713d0008970', '01a20961fcb451ae030aa06d', '01a209623f133404db1fb65e', '01a209621be719cf804c026b', 'event', 'ready', NULL, false, 1795453763370744, 0, 0, NULL, NULL, '01a209623f1368283a95f6e0', 5, 1795453763359631, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.duties VALUES ('webhook-secrets', 1795453745715403, 1795453745766019);
INSERT INTO public.duties VALUES ('tokens', 1795453745729828, 1795453745780313);
INSERT INTO public.duties VALUES ('sessions', 1795453745738969, 1795453745780569);
INSERT INTO public.duties VALUES ('quotes', 1795453745720422, 1795453745780585);
INSERT INTO public.duties VALUES ('idempotency', 1795453745740123, 1795453745793318);
INSERT INTO public.duties VALUES ('first-account-links', 1795453745743979, 1795453745798130);
INSERT INTO public.duties VALUES ('api-keys', 1795453745743015, 1795453745800762);
INSERT INTO public.duties VALUES ('retention', 1795453745741288, 1795453745819835);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (1, '01a209621c2aae291f2df27d', 1, '01a20961fcb451ae030aa06d', 'contact.created', '01a209621c2ac1225c176a52', 1, NULL, 1795453754410607, '01a209621c2401500017e060', '00-2894769abd855117a21b7568ca96d494-54140a5e69f8b847-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333735342c2264617461223a7b226964223a22303161323039363231633261633132323563313736613532222c226e616d65223a2244656c697665726564222c22656d61696c223a2264656c697665726564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30393a31342e3431305a227d7d', '89b3f71b4f8a8b7b3fdee35352c806874d9f89405ba947da15d6184153e5b07d', NULL, '793');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (2, '01a209621c4e5753afab9611', 2, '01a20961fcb451ae030aa06d', 'contact.created', '01a209621c4e069cecdc552f', 1, NULL, 1795453754446395, '01a209621c4d88211da8dd7d', '00-3a3be7c3769628d78c8746ffb5f7e946-d206fe8d2ce3062e-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333735342c2264617461223a7b226964223a22303161323039363231633465303639636563646335353266222c226e616d65223a22457868617573746564222c22656d61696c223a22657868617573746564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30393a31342e3434365a227d7d', '09ba0a3366c4f02af4f6e24f7669d5ed7d21f69fc434a073bc66d0a31ef888af', NULL, '795');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (3, '01a209623e1ed208a70eee56', 3, '01a20961fcb451ae030aa06d', 'contact.created', '01a209623e1e7c8894241de3', 1, NULL, 1795453763102564, '01a209623dfebd1937e194ce', '00-a8986e291b83295f92aa67ac6b474533-202318b130f6204d-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333736332c2264617461223a7b226964223a22303161323039363233653165376338383934323431646533222c226e616d65223a2257616974696e67222c22656d61696c223a2277616974696e67406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30393a32332e3130325a227d7d', 'b65c35cdf66b87158c4c7b3283183915fd14f336afae2ed01e9edc08543fa937', NULL, '804');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (4, '01a209623eb7bec206a9b389', 4, '01a20961fcb451ae030aa06d', 'contact.created', '01a209623eb72b5928cffe00', 1, NULL, 1795453763255638, '01a209623eb50b28d957373b', '00-c5af37a24b10c3d8a66f46bf36adb5ad-314009c3eed3b5b0-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333736332c2264617461223a7b226964223a22303161323039363233656237326235393238636666653030222c226e616d65223a2248616e67696e67222c22656d61696c223a2268616e67696e67406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30393a32332e3235355a227d7d', '4e1deec52677491f201af859a8b6f9103dc284acdb07d03e609f4b1ccbeacf12', NULL, '808');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (5, '01a209623f133404db1fb65e', 5, '01a20961fcb451ae030aa06d', 'contact.created', '01a209623f1368283a95f6e0', 1, NULL, 1795453763347163, '01a209623f0ea0806d7d3f08', '00-da42ce836f554f13ef5a7c97dd6becef-b86c1cd27f1d9a72-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333736332c2264617461223a7b226964223a22303161323039363233663133363832383361393566366530222c226e616d65223a22556e636c61696d6564222c22656d61696c223a22756e636c61696d6564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30393a32332e3334375a227d7d', '59650382f328925d89f0a02d166be79fe97ee2940caf41f4e647210510a43bf7', NULL, '813');
INSERT INTO public.first_account_links VALUES ('\x61cc9e851083b35a39f0e51295a37b3445990ca895a856d02c9e18ced5b2c5c7', 1795453740647794, 1795540140647794);
INSERT INTO public.lanes VALUES ('01a209621be719cf804c026b', '01a20961fcb451ae030aa06d', false, false, 1795453753428345, 0, 0, 0);
INSERT INTO public.lanes VALUES ('01a209621b6069302ff34342', '01a20961fcb451ae030aa06d', true, true, 1795453793389071, 0, 1795453763389071, 3);
INSERT INTO public.nodes VALUES ('01a209623d7c58845f5ad160', 1, 1795453763093034, 1795453793096046);
INSERT INTO public.outbox_state VALUES (1, 5, 0);
INSERT INTO public.schema_migrations VALUES ('outbox', 1, '0001_outbox', '479a14000f7ee946a5f5833f27b90d23062191c185d9cfdd07db27e816fad7b2', 1795453739840379);
INSERT INTO public.schema_migrations VALUES ('outbox', 2, '0002_turns', '9a53cf041992be067f18b45867d72045e49b96f0b19191dbc7f578ee78f73a0e', 1795453739952332);
INSERT INTO public.schema_migrations VALUES ('outbox', 3, '0003_duties', 'd5ff5d160f013fa55a2699878a06b21c83be969f2eb542f4b1a18c9ef1da849d', 1795453739975606);
INSERT INTO public.schema_migrations VALUES ('gateway', 1, '0001_accounts', '8c5efd9698b1be38a8319d08f0e5592261f93d5abc7945d62d01fcbc3b9fbae7', 1795453740005808);
INSERT INTO public.schema_migrations VALUES ('gateway', 2, '0002_crm', 'a0f2469e19deab6b14ecd39a77508e19c7d7cc910487052300a3d3f6c3bfbbf8', 1795453740036782);
INSERT INTO public.schema_migrations VALUES ('gateway', 3, '0003_console', '1267420ea4e647c04667a6d3cd3a1d02076edc78ebc6b79903fedbed3210a9db', 1795453740137873);
INSERT INTO public.schema_migrations VALUES ('gateway', 4, '0004_sales', '9849a8bd6df520047d4e8d1bdbfb76579f749117c19577515935dfb56a3c40b6', 1795453740161811);
INSERT INTO public.schema_migrations VALUES ('gateway', 5, '0005_billing', 'b63781b7deb470318e895d78c2a41f4cc1352653a3c7f85d379ab49c258b6a82', 1795453740281271);
INSERT INTO public.schema_migrations VALUES ('gateway', 6, '0006_duties', 'a41674b7f80fe1b2fd7558ae8c8e39d92f2b10485159d3b3ea5fea558ad647b7', 1795453740404738);
INSERT INTO public.sessions VALUES ('01a209621a714d113659fc88', '01a20961fcb451ae030aa06d', '\xbfd2840db3626223d4a2ba2a401de341cbd4be7c43f7a9fc074f8bcb090c5bf7', '127.0.0.1', 'Python/3.11 aiohttp/3.14.5', 1795453753969610, 1795453753969610, 1796663353969610, NULL);
INSERT INTO public.tallies VALUES ('01a20961fcb451ae030aa06d', 'contacts', 2, 1);
INSERT INTO public.tallies VALUES ('01a20961fcb451ae030aa06d', 'contacts', 15, 1);
INSERT INTO public.tallies VALUES ('01a20961fcb451ae030aa06d', 'contacts', 3, 1);
INSERT INTO public.tallies VALUES ('01a20961fcb451ae030aa06d', 'contacts', 0, 2);
INSERT INTO public.users VALUES ('01a20961fcb451ae030aa06d', 'ana@example.com', 'ana@example.com', 'Ana', '$argon2id$v=19$m=19456,t=2,p=1$kShHadK/2+3HAZgBqdNtwg$rqn3XPuFnrIvTclnO0swPunJiXAnzvk/AAqvO7b0LY8', 'America/Sao_Paulo', NULL, 1795453746356349, 1795453746356349, 1);
INSERT INTO public.webhooks VALUES ('01a209621be719cf804c026b', '01a20961fcb451ae030aa06d', 2, 'http://127.0.0.1:47471/paused', '["contact.created"]', NULL, 'paused', NULL, false, NULL, NULL, NULL, '\x505b8297391ea610a476280a7187b93324e0e69456090f30264c36363c1a7f760946ade844688589edeb65fbc8239f17f0a61d5e74813a47e6b4f9c7d6b141091787b06a588f693ab452ca144ea67401ea67', NULL, NULL, NULL, 0, 1795453754343203, 1795453754383485, NULL, NULL, 0, NULL, NULL, NULL, 'closed', NULL, NULL, NULL);
INSERT INTO public.webhooks VALUES ('01a209621b6069302ff34342', '01a20961fcb451ae030aa06d', 1, 'http://127.0.0.1:47471/first', '["contact.created"]', NULL, 'active', NULL, false, NULL, NULL, NULL, '\x505b829774aa4605be2648284e8cc62151de5608cb4ea2e004d78b5ac909fc908dcfdfa4eb742e6efcbce03a9eb80fd173da418e8e67082915adf0001dff9db10e2137884269f65ed8677730cc9b7f3120cf', NULL, NULL, NULL, 0, 1795453754208519, 1795453754208519, 1795453754451674, 1795453754487490, 3, 'http_5xx', 500, 1795453763271865, 'closed', NULL, NULL, NULL);
ALTER TABLE ONLY public.activities
    ADD CONSTRAINT activities_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (delivery_id, number);
ALTER TABLE ONLY public.companies
    ADD CONSTRAINT companies_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.contact_tags
    ADD CONSTRAINT contact_tags_pkey PRIMARY KEY (owner_id, value, record_id);
ALTER TABLE ONLY public.contacts
    ADD CONSTRAINT contacts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.counters
    ADD CONSTRAINT counters_pkey PRIMARY KEY (owner_id, series);
ALTER TABLE ONLY public.deal_contacts
    ADD CONSTRAINT deal_contacts_pkey PRIMARY KEY (owner_id, value, record_id);
ALTER TABLE ONLY public.deal_totals
    ADD CONSTRAINT deal_totals_pkey PRIMARY KEY (owner_id, stage, status, slot);
ALTER TABLE ONLY public.deals
    ADD CONSTRAINT deals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.duties
    ADD CONSTRAINT duties_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_id_key UNIQUE (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (pos);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_seq_key UNIQUE (seq);
ALTER TABLE ONLY public.first_account_links
    ADD CONSTRAINT first_account_links_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (owner_id, key, method, path);
ALTER TABLE ONLY public.invoices
    ADD CONSTRAINT invoices_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.lanes
    ADD CONSTRAINT lanes_pkey PRIMARY KEY (webhook_id);
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.outbox_state
    ADD CONSTRAINT outbox_state_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pipelines
    ADD CONSTRAINT pipelines_pkey PRIMARY KEY (owner_id);
ALTER TABLE ONLY public.product_categories
    ADD CONSTRAINT product_categories_pkey PRIMARY KEY (owner_id, value, record_id);
ALTER TABLE ONLY public.product_skus
    ADD CONSTRAINT product_skus_pkey PRIMARY KEY (owner_id, value);
ALTER TABLE ONLY public.products
    ADD CONSTRAINT products_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.quotes
    ADD CONSTRAINT quotes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (component, number);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tallies
    ADD CONSTRAINT tallies_pkey PRIMARY KEY (owner_id, kind, slot);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_folded_email_key UNIQUE (folded_email);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);
CREATE INDEX activities_changed ON public.activities USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX activities_newest ON public.activities USING btree (owner_id, created_at DESC, id DESC);
CREATE INDEX activities_related ON public.activities USING btree (owner_id, related_id, created_at DESC, id DESC);
CREATE INDEX api_keys_ended ON public.api_keys USING btree (COALESCE(revoked_at, expires_at)) WHERE ((expires_at IS NOT NULL) OR (revoked_at IS NOT NULL));
CREATE INDEX api_keys_owner ON public.api_keys USING btree (owner_id, created_at DESC, id DESC);
CREATE INDEX companies_changed ON public.companies USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX companies_cnpj ON public.companies USING btree (owner_id, cnpj_normal) WHERE (cnpj_normal IS NOT NULL);
CREATE INDEX companies_name ON public.companies USING btree (owner_id, sort_name, id);
CREATE INDEX companies_newest ON public.companies USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX contact_tags_record ON public.contact_tags USING btree (record_id);
CREATE INDEX contacts_changed ON public.contacts USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX contacts_company ON public.contacts USING btree (owner_id, company_id) WHERE (company_id IS NOT NULL);
CREATE INDEX contacts_name ON public.contacts USING btree (owner_id, sort_name, id);
CREATE INDEX contacts_newest ON public.contacts USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX deal_contacts_record ON public.deal_contacts USING btree (record_id);
CREATE INDEX deals_changed ON public.deals USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX deals_close ON public.deals USING btree (owner_id, COALESCE(expected_close_at, '9223372036854775807'::bigint), id);
CREATE INDEX deals_closed ON public.deals USING btree (owner_id, closed_at, status, value) WHERE (closed_at IS NOT NULL);
CREATE INDEX deals_company ON public.deals USING btree (owner_id, company_id) WHERE (company_id IS NOT NULL);
CREATE INDEX deals_newest ON public.deals USING btree (owner_id, created_at DESC, id DESC);
CREATE INDEX deals_stage ON public.deals USING btree (owner_id, stage, created_at DESC, id DESC);
CREATE INDEX deals_status ON public.deals USING btree (owner_id, status, created_at DESC, id DESC);
CREATE INDEX deals_value ON public.deals USING btree (owner_id, value, id);
CREATE INDEX deliveries_again ON public.deliveries USING btree (event_id, webhook_id) WHERE (origin <> 'event'::text);
CREATE INDEX deliveries_claimed ON public.deliveries USING btree (node_id) WHERE (state = 'in_flight'::text);
CREATE INDEX deliveries_ended ON public.deliveries USING btree (webhook_id, state, id DESC) WHERE (state = ANY (ARRAY['exhausted'::text, 'gone'::text, 'cancelled'::text, 'dead'::text]));
CREATE INDEX deliveries_held ON public.deliveries USING btree (webhook_id, record_id, seq) WHERE (state = 'held'::text);
CREATE INDEX deliveries_log ON public.deliveries USING btree (webhook_id, id DESC);
CREATE UNIQUE INDEX deliveries_once ON public.deliveries USING btree (event_id, webhook_id) WHERE (origin = 'event'::text);
CREATE INDEX deliveries_ready ON public.deliveries USING btree (webhook_id, retry, next_at) WHERE (state = 'ready'::text);
CREATE INDEX events_feed ON public.events USING btree (owner_id, seq) WHERE ((webhook_id IS NULL) AND (seq IS NOT NULL));
CREATE INDEX events_record ON public.events USING btree (owner_id, record_id, pos);
CREATE INDEX events_unseen ON public.events USING btree (pos) WHERE (seq IS NULL);
CREATE INDEX idempotency_old ON public.idempotency USING btree (created_at);
CREATE INDEX invoices_changed ON public.invoices USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX invoices_company ON public.invoices USING btree (owner_id, company_id) WHERE (company_id IS NOT NULL);
CREATE INDEX invoices_contact ON public.invoices USING btree (owner_id, contact_id) WHERE (contact_id IS NOT NULL);
CREATE INDEX invoices_deal ON public.invoices USING btree (owner_id, deal_id) WHERE (deal_id IS NOT NULL);
CREATE INDEX invoices_due ON public.invoices USING btree (owner_id, due_at, id);
CREATE INDEX invoices_newest ON public.invoices USING btree (owner_id, created_at DESC, id DESC, status, due_at, due_day, total);
CREATE UNIQUE INDEX invoices_number ON public.invoices USING btree (owner_id, number);
CREATE INDEX invoices_owed ON public.invoices USING btree (owner_id, due_at, due_day, total) WHERE (status = 'pending'::text);
CREATE INDEX invoices_paid ON public.invoices USING btree (owner_id, paid_at, total) WHERE (paid_at IS NOT NULL);
CREATE INDEX invoices_quote ON public.invoices USING btree (owner_id, quote_id) WHERE (quote_id IS NOT NULL);
CREATE INDEX lanes_due ON public.lanes USING btree (failing, due_at) WHERE (active AND (due_at IS NOT NULL));
CREATE INDEX product_categories_record ON public.product_categories USING btree (record_id);
CREATE INDEX product_skus_record ON public.product_skus USING btree (record_id);
CREATE INDEX products_changed ON public.products USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX products_name ON public.products USING btree (owner_id, sort_name, id);
CREATE INDEX products_newest ON public.products USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX products_price ON public.products USING btree (owner_id, price, id);
CREATE INDEX quotes_changed ON public.quotes USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX quotes_company ON public.quotes USING btree (owner_id, company_id) WHERE (company_id IS NOT NULL);
CREATE INDEX quotes_contact ON public.quotes USING btree (owner_id, contact_id) WHERE (contact_id IS NOT NULL);
CREATE INDEX quotes_deal ON public.quotes USING btree (owner_id, deal_id) WHERE (deal_id IS NOT NULL);
CREATE INDEX quotes_lapsing ON public.quotes USING btree (lapses_at) WHERE ((status = 'sent'::text) AND (lapses_at IS NOT NULL));
CREATE INDEX quotes_newest ON public.quotes USING btree (owner_id, created_at DESC, id DESC, status, valid_until, valid_day);
CREATE UNIQUE INDEX quotes_number ON public.quotes USING btree (owner_id, number);
CREATE INDEX sessions_old ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_owner ON public.sessions USING btree (owner_id, seen_at DESC);
CREATE INDEX tasks_changed ON public.tasks USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX tasks_completed ON public.tasks USING btree (owner_id, completed, created_at DESC, id DESC);
CREATE INDEX tasks_contact ON public.tasks USING btree (owner_id, contact_id) WHERE (contact_id IS NOT NULL);
CREATE INDEX tasks_deal ON public.tasks USING btree (owner_id, deal_id) WHERE (deal_id IS NOT NULL);
CREATE INDEX tasks_due ON public.tasks USING btree (owner_id, COALESCE(due_at, '9223372036854775807'::bigint), id);
CREATE INDEX tasks_newest ON public.tasks USING btree (owner_id, created_at DESC, id DESC);
CREATE INDEX tasks_open ON public.tasks USING btree (owner_id, due_at, id, due_day) WHERE (completed_at IS NULL);
CREATE INDEX tasks_priority ON public.tasks USING btree (owner_id, priority, created_at DESC, id DESC);
CREATE INDEX tokens_old ON public.tokens USING btree (expires_at);
CREATE INDEX tokens_owner ON public.tokens USING btree (owner_id);
CREATE INDEX webhooks_old_secret ON public.webhooks USING btree (old_secret_until) WHERE (old_secret_until IS NOT NULL);
CREATE INDEX webhooks_owner ON public.webhooks USING btree (owner_id, created_at DESC, id DESC);
CREATE INDEX webhooks_since ON public.webhooks USING btree (id) WHERE (since_snapshot IS NOT NULL);
CREATE INDEX webhooks_standing ON public.webhooks USING btree (state, circuit);
CREATE TRIGGER deals_counted AFTER INSERT OR DELETE OR UPDATE OF stage, status, value ON public.deals FOR EACH ROW EXECUTE FUNCTION public.count_deals();
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.contact_tags
    ADD CONSTRAINT contact_tags_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.contacts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.deal_contacts
    ADD CONSTRAINT deal_contacts_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.deals(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.lanes
    ADD CONSTRAINT lanes_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.product_categories
    ADD CONSTRAINT product_categories_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.products(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.product_skus
    ADD CONSTRAINT product_skus_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.products(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);
SELECT pg_catalog.setval('public.events_pos_seq', 5, true);
