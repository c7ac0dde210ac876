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
CREATE TABLE public.pending_ends (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C",
    noun text NOT NULL COLLATE pg_catalog."C"
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
INSERT INTO public.api_keys VALUES ('01a20962d4deeaa3a5b041c1', '01a20962c9c2c8ea535433ce', 'upgrade', 'crt_QVDt1I7k', '\x1eaf2219164ad9af3dbc56e9ce74e140badd3712a8fc8810ec0414290a35c3ec', '["read","write"]', NULL, 1795453802824535, NULL, 1795453801694132);
INSERT INTO public.attempts VALUES ('01a20962c9c2c8ea535433ce', '01a20962d926f4698644e66a', '01a20962d772337f55158b86', '01a20962d9161ecc425dbac5', 1, 'event', 'success', 200, NULL, 1795453802817343, NULL, 4855, NULL, 839, 6552, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453802"],["X-Webhook-Signature","sha256=c34d7795dd7bb757a84fe35a6bf7cb54ca1e6915b8fc0197ba3f4db37f954723"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20962d9161ecc425dbac5"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20962d9161ecc425dbac5"],["webhook-timestamp","1795453802"],["webhook-signature","v1,24NcDpl1/7id4kiJjTMe2e0MreLZblifSSi1gXAwzh8="],["traceparent","00-0a2e722dfa12dd04f2146986774feffc-c5348a6a45544fa9-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:10:02 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20962bee6909a27332775');
INSERT INTO public.attempts VALUES ('01a20962c9c2c8ea535433ce', '01a20962d96979a4b93026cc', '01a20962d772337f55158b86', '01a20962d94bf9438c3acac7', 1, 'event', 'http_5xx', 500, NULL, 1795453802867391, NULL, NULL, NULL, 778, 1160, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453802"],["X-Webhook-Signature","sha256=c947feb6d81c9ed6fed2fb883e894360ad717b7a72789101cb6702645de3ea36"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20962d94bf9438c3acac7"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20962d94bf9438c3acac7"],["webhook-timestamp","1795453802"],["webhook-signature","v1,CORny0mx6RFMYK1dmlNGrDgCeuPv9PZ+/6xbl0S+MiM="],["traceparent","00-0da6b0098e5246a40053b25bf964be47-d4d87d662a053425-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:10:02 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20962bee6909a27332775');
INSERT INTO public.attempts VALUES ('01a20962c9c2c8ea535433ce', '01a20962d96979a4b93026cc', '01a20962d772337f55158b86', '01a20962d94bf9438c3acac7', 2, 'event', 'http_5xx', 500, NULL, 1795453802997100, NULL, NULL, NULL, 51415, 51885, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453802"],["X-Webhook-Signature","sha256=c947feb6d81c9ed6fed2fb883e894360ad717b7a72789101cb6702645de3ea36"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20962d94bf9438c3acac7"],["X-Webhook-Attempt","2"],["X-Webhook-Record-Version","1"],["webhook-id","01a20962d94bf9438c3acac7"],["webhook-timestamp","1795453802"],["webhook-signature","v1,CORny0mx6RFMYK1dmlNGrDgCeuPv9PZ+/6xbl0S+MiM="],["traceparent","00-0da6b0098e5246a40053b25bf964be47-31226372d6bb5f2a-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:10:03 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20962bee6909a27332775');
INSERT INTO public.attempts VALUES ('01a20962c9c2c8ea535433ce', '01a20963009e6e7cd1758e2b', '01a20962d772337f55158b86', '01a20963008d3f82f561439e', 1, 'event', 'http_5xx', 500, NULL, 1795453813161015, NULL, 10625, NULL, 1673, 13791, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453812"],["X-Webhook-Signature","sha256=08b318aa2caed11a4479e2015c3395c90b06c99daf3b9489b26427b7da2295ec"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20963008d3f82f561439e"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20963008d3f82f561439e"],["webhook-timestamp","1795453813"],["webhook-signature","v1,wSkPkHRCoT9nc/fR2z4/mtGdtHNMqYQFp4zq3XP63xM="],["traceparent","00-2769b3aea14feaf99628780dabb4846e-e45bbea249b977b8-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:10:13 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a209630012b7403ddd4064');
INSERT INTO public.contacts VALUES ('01a20962d9163b555dbd9e0b', '01a20962c9c2c8ea535433ce', 1, 1795453802774761, NULL, 'Delivered', 'delivered@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'delivereddelivered@example.com', 'delivered');
INSERT INTO public.contacts VALUES ('01a20962d94b99a2169acf49', '01a20962c9c2c8ea535433ce', 1, 1795453802827678, NULL, 'Exhausted', 'exhausted@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'exhaustedexhausted@example.com', 'exhausted');
INSERT INTO public.contacts VALUES ('01a20963008da3e14faf134b', '01a20962c9c2c8ea535433ce', 1, 1795453812877056, NULL, 'Waiting', 'waiting@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'waitingwaiting@example.com', 'waiting');
INSERT INTO public.contacts VALUES ('01a2096301b884c355051c94', '01a20962c9c2c8ea535433ce', 1, 1795453813176480, NULL, 'Hanging', 'hanging@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'hanginghanging@example.com', 'hanging');
INSERT INTO public.contacts VALUES ('01a2096302d943f7046fbbba', '01a20962c9c2c8ea535433ce', 1, 1795453813465649, NULL, 'Unclaimed', 'unclaimed@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'unclaimedunclaimed@example.com', 'unclaimed');
INSERT INTO public.deliveries VALUES ('01a20962d92655da5b17cef7', '01a20962c9c2c8ea535433ce', '01a20962d9161ecc425dbac5', '01a20962d84347dd4d52914c', 'event', 'ready', NULL, false, 1795453802804494, 0, 0, NULL, NULL, '01a20962d9163b555dbd9e0b', 1, 1795453802790894, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a20962d926f4698644e66a', '01a20962c9c2c8ea535433ce', '01a20962d9161ecc425dbac5', '01a20962d772337f55158b86', 'event', 'delivered', 'success', true, 1795453802836236, 1, 1, NULL, NULL, '01a20962d9163b555dbd9e0b', 1, 1795453802790894, 1795453802829999, 'success', 200, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a20962d969761524e61e19', '01a20962c9c2c8ea535433ce', '01a20962d94bf9438c3acac7', '01a20962d84347dd4d52914c', 'event', 'ready', NULL, false, 1795453802864505, 0, 0, NULL, NULL, '01a20962d94b99a2169acf49', 2, 1795453802857699, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a20962d96979a4b93026cc', '01a20962c9c2c8ea535433ce', '01a20962d94bf9438c3acac7', '01a20962d772337f55158b86', 'event', 'exhausted', 'http_5xx', true, 1795453803056318, 2, 2, NULL, NULL, '01a20962d94b99a2169acf49', 2, 1795453802857699, 1795453803052116, 'http_5xx', 500, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a20963009edfaec71d4d59', '01a20962c9c2c8ea535433ce', '01a20963008d3f82f561439e', '01a20962d84347dd4d52914c', 'event', 'ready', NULL, false, 1795453813032740, 0, 0, NULL, NULL, '01a20963008da3e14faf134b', 3, 1795453812894717, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a20963009e6e7cd1758e2b', '01a20962c9c2c8ea535433ce', '01a20963008d3f82f561439e', '01a20962d772337f55158b86', 'event', 'ready', 'http_5xx', true, 1795453883695245, 1, 1, NULL, NULL, '01a20963008da3e14faf134b', 3, 1795453812894717, NULL, 'http_5xx', 500, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096301ce6e713a8612c9', '01a20962c9c2c8ea535433ce', '01a2096301b8558910e4bdfa', '01a20962d84347dd4d52914c', 'event', 'ready', NULL, false, 1795453813416084, 0, 0, NULL, NULL, '01a2096301b884c355051c94', 4, 1795453813198123, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096301ce3e8210395315', '01a20962c9c2c8ea535433ce', '01a2096301b8558910e4bdfa', '01a20962d772337f55158b86', 'event', 'in_flight', NULL, false, 1795453813416084, 0, 1, '01a209630012b7403ddd4064-6', '01a209630012b7403ddd4064', '01a2096301b884c355051c94', 4, 1795453813198123, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096302e30247cbeaa710', '01a20962c9c2c8ea535433ce', '01a2096302d98e373b85e085', '01a20962d772337f55158b86', 'event', 'ready', NULL, false, 1795453813489207, 0, 0, NULL, NULL, '01a2096302d943f7046fbbba', 5, 1795453813475888, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096302e304afcfb86dec', '01a20962c9c2c8ea535433ce', '01a2096302d98e373b85e085', '01a20962d84347dd4d52914c', 'event', 'ready', NULL, false, 1795453813489207, 0, 0, NULL, NULL, '01a2096302d943f7046fbbba', 5, 1795453813475888, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.duties VALUES ('idempotency', 1795453801164165, 1795453801210227);
INSERT INTO public.duties VALUES ('quotes', 1795453801160258, 1795453801214857);
INSERT INTO public.duties VALUES ('tokens', 1795453801157070, 1795453801218476);
INSERT INTO public.duties VALUES ('first-account-links', 1795453801167240, 1795453801223676);
INSERT INTO public.duties VALUES ('webhook-secrets', 1795453801188350, 1795453801225244);
INSERT INTO public.duties VALUES ('api-keys', 1795453801190469, 1795453801226408);
INSERT INTO public.duties VALUES ('sessions', 1795453801189353, 1795453801235843);
INSERT INTO public.duties VALUES ('retention', 1795453801156115, 1795453801236698);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (1, '01a20962d9161ecc425dbac5', 1, '01a20962c9c2c8ea535433ce', 'contact.created', '01a20962d9163b555dbd9e0b', 1, NULL, 1795453802774761, '01a20962d9139f13d3f00ba0', '00-0a2e722dfa12dd04f2146986774feffc-880f8dd3389b12ef-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333830322c2264617461223a7b226964223a22303161323039363264393136336235353564626439653062222c226e616d65223a2244656c697665726564222c22656d61696c223a2264656c697665726564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31303a30322e3737345a227d7d', '7d414e600fa230c325f03bbf34bf99e9efdddee7a693db9a9f84aef8feb9c82c', NULL, '795');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (2, '01a20962d94bf9438c3acac7', 2, '01a20962c9c2c8ea535433ce', 'contact.created', '01a20962d94b99a2169acf49', 1, NULL, 1795453802827678, '01a20962d948cce4c7dcddc7', '00-0da6b0098e5246a40053b25bf964be47-f58de1af61bcbcf5-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333830322c2264617461223a7b226964223a22303161323039363264393462393961323136396163663439222c226e616d65223a22457868617573746564222c22656d61696c223a22657868617573746564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31303a30322e3832375a227d7d', '46af43050630750c1f54dafcf8c74cc0e02c1ab0020569ff8450286dcaa7d8b5', NULL, '797');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (3, '01a20963008d3f82f561439e', 3, '01a20962c9c2c8ea535433ce', 'contact.created', '01a20963008da3e14faf134b', 1, NULL, 1795453812877056, '01a209630071e9af1c93d4d0', '00-2769b3aea14feaf99628780dabb4846e-29fa6dc6ff210863-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333831322c2264617461223a7b226964223a22303161323039363330303864613365313466616631333462222c226e616d65223a2257616974696e67222c22656d61696c223a2277616974696e67406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31303a31322e3837375a227d7d', '93122d159322c1369417a308681877b4437e8e89fef9b8bb99e103d9c80946c8', NULL, '807');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (4, '01a2096301b8558910e4bdfa', 4, '01a20962c9c2c8ea535433ce', 'contact.created', '01a2096301b884c355051c94', 1, NULL, 1795453813176480, '01a2096301b70bf97c73b2e1', '00-b92b491cc61c5c7921d2bca2025415ee-f491c336d84727ac-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333831332c2264617461223a7b226964223a22303161323039363330316238383463333535303531633934222c226e616d65223a2248616e67696e67222c22656d61696c223a2268616e67696e67406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31303a31332e3137365a227d7d', '3d50d47fc436a4ea3647ccd56c9f2d0702e3106e36e432f3027f2efec189ad58', NULL, '812');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (5, '01a2096302d98e373b85e085', 5, '01a20962c9c2c8ea535433ce', 'contact.created', '01a2096302d943f7046fbbba', 1, NULL, 1795453813465649, '01a2096302d8de996a501aea', '00-c3e7aa337eafafdf0f3201bd90b7b267-7fb22a484a6f21e2-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333831332c2264617461223a7b226964223a22303161323039363330326439343366373034366662626261222c226e616d65223a22556e636c61696d6564222c22656d61696c223a22756e636c61696d6564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31303a31332e3436355a227d7d', '2aaa115c59fdbd853f7c2fc4af6a8a4c06bb53d21c62fd1fc116a494de9f975e', NULL, '817');
INSERT INTO public.first_account_links VALUES ('\x541b028755dd879dcc0a8268168ccc660aef75ff663fc2665311e1dec04fad96', 1795453796124824, 1795540196124824);
INSERT INTO public.lanes VALUES ('01a20962d84347dd4d52914c', '01a20962c9c2c8ea535433ce', false, false, 1795453801804494, 0, 0, 0);
INSERT INTO public.lanes VALUES ('01a20962d772337f55158b86', '01a20962c9c2c8ea535433ce', true, true, 1795453843576335, 0, 1795453813576335, 3);
INSERT INTO public.nodes VALUES ('01a209630012b7403ddd4064', 1, 1795453812851259, 1795453842855208);
INSERT INTO public.outbox_state VALUES (1, 5, 0);
INSERT INTO public.schema_migrations VALUES ('outbox', 1, '0001_outbox', '479a14000f7ee946a5f5833f27b90d23062191c185d9cfdd07db27e816fad7b2', 1795453795635953);
INSERT INTO public.schema_migrations VALUES ('outbox', 2, '0002_turns', '9a53cf041992be067f18b45867d72045e49b96f0b19191dbc7f578ee78f73a0e', 1795453795675356);
INSERT INTO public.schema_migrations VALUES ('outbox', 3, '0003_duties', 'd5ff5d160f013fa55a2699878a06b21c83be969f2eb542f4b1a18c9ef1da849d', 1795453795678959);
INSERT INTO public.schema_migrations VALUES ('gateway', 1, '0001_accounts', '8c5efd9698b1be38a8319d08f0e5592261f93d5abc7945d62d01fcbc3b9fbae7', 1795453795682802);
INSERT INTO public.schema_migrations VALUES ('gateway', 2, '0002_crm', 'a0f2469e19deab6b14ecd39a77508e19c7d7cc910487052300a3d3f6c3bfbbf8', 1795453795689399);
INSERT INTO public.schema_migrations VALUES ('gateway', 3, '0003_console', '1267420ea4e647c04667a6d3cd3a1d02076edc78ebc6b79903fedbed3210a9db', 1795453795702285);
INSERT INTO public.schema_migrations VALUES ('gateway', 4, '0004_sales', '9849a8bd6df520047d4e8d1bdbfb76579f749117c19577515935dfb56a3c40b6', 1795453795706791);
INSERT INTO public.schema_migrations VALUES ('gateway', 5, '0005_billing', 'ca08f492f8ceff8578c1ea189caa99fed5531cdbd8526b2219ecf9ca6402fb9b', 1795453795729665);
INSERT INTO public.schema_migrations VALUES ('gateway', 6, '0006_duties', 'a41674b7f80fe1b2fd7558ae8c8e39d92f2b10485159d3b3ea5fea558ad647b7', 1795453795764468);
INSERT INTO public.schema_migrations VALUES ('gateway', 7, '0007_pending_ends', 'c7d2585e20f86e5e867b919ab9fc5898fee88413e80f28c34241a523b3e11d8f', 1795453795765611);
INSERT INTO public.sessions VALUES ('01a20962d6dfc644e105e610', '01a20962c9c2c8ea535433ce', '\x74c2924ed00cb7be9f93c948b1807d6e1de7bd8c5fd64ddd962002ae0a26f2af', '127.0.0.1', 'Python/3.11 aiohttp/3.14.5', 1795453802207052, 1795453802207052, 1796663402207052, NULL);
INSERT INTO public.tallies VALUES ('01a20962c9c2c8ea535433ce', 'contacts', 9, 1);
INSERT INTO public.tallies VALUES ('01a20962c9c2c8ea535433ce', 'contacts', 11, 2);
INSERT INTO public.tallies VALUES ('01a20962c9c2c8ea535433ce', 'contacts', 4, 1);
INSERT INTO public.tallies VALUES ('01a20962c9c2c8ea535433ce', 'contacts', 10, 1);
INSERT INTO public.users VALUES ('01a20962c9c2c8ea535433ce', 'ana@example.com', 'ana@example.com', 'Ana', '$argon2id$v=19$m=19456,t=2,p=1$KobdQ+ByM14mNqod61BEIw$InAT68nqQaRvUOIA/1hfHU0j1F06YacpKE0kD+/3lcA', 'America/Sao_Paulo', NULL, 1795453798850260, 1795453798850260, 1);
INSERT INTO public.webhooks VALUES ('01a20962d84347dd4d52914c', '01a20962c9c2c8ea535433ce', 2, 'http://127.0.0.1:47471/paused', '["contact.created"]', NULL, 'paused', NULL, false, NULL, NULL, NULL, '\x505b8297698d364c4be93320328ac0c61ee8d8f7562a64c23066b6472f114a3122b55c5356331598de0ef90fd971aff9ca03e608c0d8f1254dd2b10f5d45ccdd5c6098aecc2b7533199b127c2e19eeabf0a0', NULL, NULL, NULL, 0, 1795453802563764, 1795453802696570, NULL, NULL, 0, NULL, NULL, NULL, 'closed', NULL, NULL, NULL);
INSERT INTO public.webhooks VALUES ('01a20962d772337f55158b86', '01a20962c9c2c8ea535433ce', 1, 'http://127.0.0.1:47471/first', '["contact.created"]', NULL, 'active', NULL, false, NULL, NULL, NULL, '\x505b8297946c89f92644e26464b7e6bd4e7f7b89d9e845ee2c492482f669b4d42e72ec9e25a1f9861ba3cac9ca16fb2b4fd056e57f059cb2e3a876c7aed5b5b59cf745681dfbe80b3a50924a042330db84fd', NULL, NULL, NULL, 0, 1795453802354932, 1795453802354932, 1795453802829999, 1795453802874232, 3, 'http_5xx', 500, 1795453813189273, 'closed', NULL, NULL, NULL);
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
ALTER TABLE ONLY public.pending_ends
    ADD CONSTRAINT pending_ends_pkey PRIMARY KEY (owner_id, record_id);
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
