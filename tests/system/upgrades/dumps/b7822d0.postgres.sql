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
    CONSTRAINT deliveries_origin_check CHECK ((origin = ANY (ARRAY['event'::text, 'replay'::text, 'test'::text]))),
    CONSTRAINT deliveries_state_check CHECK ((state = ANY (ARRAY['ready'::text, 'in_flight'::text, 'held'::text, 'delivered'::text, 'exhausted'::text, 'gone'::text, 'cancelled'::text, 'dead'::text])))
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
    erased_at bigint
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
    wait_until bigint DEFAULT 0 NOT NULL
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
    CONSTRAINT webhooks_circuit_check CHECK ((circuit = ANY (ARRAY['closed'::text, 'open'::text, 'half_open'::text]))),
    CONSTRAINT webhooks_state_check CHECK ((state = ANY (ARRAY['active'::text, 'paused'::text, 'disabled'::text])))
);
INSERT INTO public.api_keys VALUES ('01a20961362ce390eb2bc4ad', '01a209611769344084dcf092', 'upgrade', 'crt_uxNfaIiS', '\xd04d89a8e7de7e25eac97a3c20550596fec8038abbf46b3752c545f21743eecc', '["read","write"]', NULL, 1795453696940742, NULL, 1795453695532081);
INSERT INTO public.attempts VALUES ('01a209611769344084dcf092', '01a209613b9bec4c11c021e8', '01a209613a9b06fb8245ecc0', '01a209613b8f43311726a1b4', 1, 'event', 'success', 200, NULL, 1795453696935812, NULL, 619, NULL, 1205, 2491, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453696"],["X-Webhook-Signature","sha256=8947580ea021ee56ed5192b5e2506cc06d062830aeda6ec5dfef9e8352df0cf4"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209613b8f43311726a1b4"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a209613b8f43311726a1b4"],["webhook-timestamp","1795453696"],["webhook-signature","v1,KGvcHjBqeU5e0yw/tca1OxL2NjjG+w/o9ebldplvB2Y="],["traceparent","00-65b7084db3fda26f64a1d61cab98696c-306c741d48dacddb-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:08:16 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a2096104c26170ca47d5a4');
INSERT INTO public.attempts VALUES ('01a209611769344084dcf092', '01a209613bc64c9b9ce82959', '01a209613a9b06fb8245ecc0', '01a209613bafd7985c83c28c', 1, 'event', 'http_5xx', 500, NULL, 1795453697004244, NULL, NULL, NULL, 2393, 2733, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453696"],["X-Webhook-Signature","sha256=0298ca06142ed5e62b55c7765b5afd29664f2b038b6c5d75166899d3a917a61f"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209613bafd7985c83c28c"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a209613bafd7985c83c28c"],["webhook-timestamp","1795453697"],["webhook-signature","v1,nUoid81Y2Yxc5PEL6i4WlNEMnB9waY2g1QCzrv1IR1Q="],["traceparent","00-a1d375298207636a6e578c12da92fc57-144f9c6b0c673dd6-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:08:17 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a2096104c26170ca47d5a4');
INSERT INTO public.attempts VALUES ('01a209611769344084dcf092', '01a209613bc64c9b9ce82959', '01a209613a9b06fb8245ecc0', '01a209613bafd7985c83c28c', 2, 'event', 'http_5xx', 500, NULL, 1795453697157190, NULL, NULL, NULL, 2832, 3195, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453696"],["X-Webhook-Signature","sha256=0298ca06142ed5e62b55c7765b5afd29664f2b038b6c5d75166899d3a917a61f"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209613bafd7985c83c28c"],["X-Webhook-Attempt","2"],["X-Webhook-Record-Version","1"],["webhook-id","01a209613bafd7985c83c28c"],["webhook-timestamp","1795453697"],["webhook-signature","v1,nUoid81Y2Yxc5PEL6i4WlNEMnB9waY2g1QCzrv1IR1Q="],["traceparent","00-a1d375298207636a6e578c12da92fc57-721f7001f0805cd4-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:08:17 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a2096104c26170ca47d5a4');
INSERT INTO public.attempts VALUES ('01a209611769344084dcf092', '01a2096155034abddf7c774e', '01a209613a9b06fb8245ecc0', '01a2096154f9c6216017323a', 1, 'event', 'http_5xx', 500, NULL, 1795453703497515, NULL, 10042, NULL, 2633, 13828, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453703"],["X-Webhook-Signature","sha256=cc503586fe8fa534a3d8ac46d50190ddc2ec428a5adddee9d144ca0283903a37"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a2096154f9c6216017323a"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a2096154f9c6216017323a"],["webhook-timestamp","1795453703"],["webhook-signature","v1,QQn5vMSJiQsNv4z8o0I2+kgvyVAiR3KfVlNto8J8Zjs="],["traceparent","00-382c823fb919018939ab78a70c3004ef-772e66f8cdc21d3e-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:08:23 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20961547adbb35cac8dcf');
INSERT INTO public.contacts VALUES ('01a209613b8fc28bae2538d1', '01a209611769344084dcf092', 1, 1795453696911766, NULL, 'Delivered', 'delivered@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'delivereddelivered@example.com', 'delivered');
INSERT INTO public.contacts VALUES ('01a209613bafc0e264dc3ac2', '01a209611769344084dcf092', 1, 1795453696943652, NULL, 'Exhausted', 'exhausted@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'exhaustedexhausted@example.com', 'exhausted');
INSERT INTO public.contacts VALUES ('01a2096154f9c887574ff277', '01a209611769344084dcf092', 1, 1795453703417266, NULL, 'Waiting', 'waiting@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'waitingwaiting@example.com', 'waiting');
INSERT INTO public.contacts VALUES ('01a20961555b49e08e9ab892', '01a209611769344084dcf092', 1, 1795453703515929, NULL, 'Hanging', 'hanging@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'hanginghanging@example.com', 'hanging');
INSERT INTO public.contacts VALUES ('01a2096155d88a11daaba23c', '01a209611769344084dcf092', 1, 1795453703640162, NULL, 'Unclaimed', 'unclaimed@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'unclaimedunclaimed@example.com', 'unclaimed');
INSERT INTO public.deliveries VALUES ('01a209613b9bc8cba6e232a7', '01a209611769344084dcf092', '01a209613b8f43311726a1b4', '01a209613b44572ac1d905cb', 'event', 'ready', NULL, false, 1795453696931648, 0, 0, NULL, NULL, '01a209613b8fc28bae2538d1', 1, 1795453696923814, NULL, NULL, NULL, NULL);
INSERT INTO public.deliveries VALUES ('01a209613b9bec4c11c021e8', '01a209611769344084dcf092', '01a209613b8f43311726a1b4', '01a209613a9b06fb8245ecc0', 'event', 'delivered', 'success', true, 1795453696965279, 1, 1, NULL, NULL, '01a209613b8fc28bae2538d1', 1, 1795453696923814, 1795453696961073, 'success', 200, NULL);
INSERT INTO public.deliveries VALUES ('01a209613bc6d9472241cdfe', '01a209611769344084dcf092', '01a209613bafd7985c83c28c', '01a209613b44572ac1d905cb', 'event', 'ready', NULL, false, 1795453696987726, 0, 0, NULL, NULL, '01a209613bafc0e264dc3ac2', 2, 1795453696966027, NULL, NULL, NULL, NULL);
INSERT INTO public.deliveries VALUES ('01a209613bc64c9b9ce82959', '01a209611769344084dcf092', '01a209613bafd7985c83c28c', '01a209613a9b06fb8245ecc0', 'event', 'exhausted', 'http_5xx', true, 1795453697164035, 2, 2, NULL, NULL, '01a209613bafc0e264dc3ac2', 2, 1795453696966027, 1795453697163395, 'http_5xx', 500, NULL);
INSERT INTO public.deliveries VALUES ('01a209615503f9d091160377', '01a209611769344084dcf092', '01a2096154f9c6216017323a', '01a209613b44572ac1d905cb', 'event', 'ready', NULL, false, 1795453703456383, 0, 0, NULL, NULL, '01a2096154f9c887574ff277', 3, 1795453703427620, NULL, NULL, NULL, NULL);
INSERT INTO public.deliveries VALUES ('01a2096155034abddf7c774e', '01a209611769344084dcf092', '01a2096154f9c6216017323a', '01a209613a9b06fb8245ecc0', 'event', 'ready', 'http_5xx', true, 1795453762611948, 1, 1, NULL, NULL, '01a2096154f9c887574ff277', 3, 1795453703427620, NULL, 'http_5xx', 500, NULL);
INSERT INTO public.deliveries VALUES ('01a209615567bf793db86bf4', '01a209611769344084dcf092', '01a20961555bde009c17dd70', '01a209613b44572ac1d905cb', 'event', 'ready', NULL, false, 1795453703591916, 0, 0, NULL, NULL, '01a20961555b49e08e9ab892', 4, 1795453703527683, NULL, NULL, NULL, NULL);
INSERT INTO public.deliveries VALUES ('01a2096155673235eaf85e0a', '01a209611769344084dcf092', '01a20961555bde009c17dd70', '01a209613a9b06fb8245ecc0', 'event', 'in_flight', NULL, false, 1795453703591916, 0, 1, '01a20961547adbb35cac8dcf-4', '01a20961547adbb35cac8dcf', '01a20961555b49e08e9ab892', 4, 1795453703527683, NULL, NULL, NULL, NULL);
INSERT INTO public.deliveries VALUES ('01a2096155eb886ebfd753fe', '01a209611769344084dcf092', '01a2096155d894ca1803c686', '01a209613a9b06fb8245ecc0', 'event', 'ready', NULL, false, 1795453703667683, 0, 0, NULL, NULL, '01a2096155d88a11daaba23c', 5, 1795453703659336, NULL, NULL, NULL, NULL);
INSERT INTO public.deliveries VALUES ('01a2096155ebf5e8a32772de', '01a209611769344084dcf092', '01a2096155d894ca1803c686', '01a209613b44572ac1d905cb', 'event', 'ready', NULL, false, 1795453703667683, 0, 0, NULL, NULL, '01a2096155d88a11daaba23c', 5, 1795453703659336, NULL, NULL, NULL, NULL);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (1, '01a209613b8f43311726a1b4', 1, '01a209611769344084dcf092', 'contact.created', '01a209613b8fc28bae2538d1', 1, NULL, 1795453696911766, '01a209613b8d4927fa1f85de', '00-65b7084db3fda26f64a1d61cab98696c-04957a8802dbc507-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333639362c2264617461223a7b226964223a22303161323039363133623866633238626165323533386431222c226e616d65223a2244656c697665726564222c22656d61696c223a2264656c697665726564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30383a31362e3931315a227d7d', '78e7f655ea9e8e3e089f3941c07ff8e33536c80654adb760f9a1aee54c969b02', NULL);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (2, '01a209613bafd7985c83c28c', 2, '01a209611769344084dcf092', 'contact.created', '01a209613bafc0e264dc3ac2', 1, NULL, 1795453696943652, '01a209613bacee92b7f3b92b', '00-a1d375298207636a6e578c12da92fc57-8c0f0ed69253da71-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333639362c2264617461223a7b226964223a22303161323039363133626166633065323634646333616332222c226e616d65223a22457868617573746564222c22656d61696c223a22657868617573746564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30383a31362e3934335a227d7d', 'd3bc5c4c878665ae83b7fcfe0f361a48cf4710cbfeb15e8e9c50f8e8fb9030bf', NULL);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (3, '01a2096154f9c6216017323a', 3, '01a209611769344084dcf092', 'contact.created', '01a2096154f9c887574ff277', 1, NULL, 1795453703417266, '01a2096154e0a1665fca05db', '00-382c823fb919018939ab78a70c3004ef-6c519d59aff1f6d8-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333730332c2264617461223a7b226964223a22303161323039363135346639633838373537346666323737222c226e616d65223a2257616974696e67222c22656d61696c223a2277616974696e67406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30383a32332e3431375a227d7d', '43890f99b92fa8c656baf014f9d432931b5ac8db0caca035dcb0e6f189127907', NULL);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (4, '01a20961555bde009c17dd70', 4, '01a209611769344084dcf092', 'contact.created', '01a20961555b49e08e9ab892', 1, NULL, 1795453703515929, '01a2096155576e82d5b6629d', '00-d0a6d405b45b55e49127fc00dacc9d77-15d1445ab4c7c5d7-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333730332c2264617461223a7b226964223a22303161323039363135353562343965303865396162383932222c226e616d65223a2248616e67696e67222c22656d61696c223a2268616e67696e67406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30383a32332e3531355a227d7d', 'f138476ba6f218b354f4e0bea867c2a852251194b7baa283188799cff59bb1e9', NULL);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (5, '01a2096155d894ca1803c686', 5, '01a209611769344084dcf092', 'contact.created', '01a2096155d88a11daaba23c', 1, NULL, 1795453703640162, '01a2096155d476f529934a09', '00-100e015585c5475e5a0d9082057d4ed0-c7c9b71f61875ade-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333730332c2264617461223a7b226964223a22303161323039363135356438386131316461616261323363222c226e616d65223a22556e636c61696d6564222c22656d61696c223a22756e636c61696d6564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a30383a32332e3634305a227d7d', '49320106c2c88aa8d4644dc4980928193d5cf391d96d7f624e84ddf907eceeec', NULL);
INSERT INTO public.first_account_links VALUES ('\x2d2fbfe96686fa602496b89a5565f18072ba07de589cedb629ed007e37e4f0e3', 1795453682962903, 1795540082962903);
INSERT INTO public.lanes VALUES ('01a209613b44572ac1d905cb', '01a209611769344084dcf092', false, false, 1795453696931648, 0);
INSERT INTO public.lanes VALUES ('01a209613a9b06fb8245ecc0', '01a209611769344084dcf092', true, true, 1795453733678570, 0);
INSERT INTO public.nodes VALUES ('01a20961547adbb35cac8dcf', 1, 1795453703368849, 1795453733385365);
INSERT INTO public.outbox_state VALUES (1, 5, 0);
INSERT INTO public.schema_migrations VALUES ('outbox', 1, '0001_outbox', '479a14000f7ee946a5f5833f27b90d23062191c185d9cfdd07db27e816fad7b2', 1795453682442083);
INSERT INTO public.schema_migrations VALUES ('gateway', 1, '0001_accounts', '8c5efd9698b1be38a8319d08f0e5592261f93d5abc7945d62d01fcbc3b9fbae7', 1795453682508538);
INSERT INTO public.schema_migrations VALUES ('gateway', 2, '0002_crm', 'a0f2469e19deab6b14ecd39a77508e19c7d7cc910487052300a3d3f6c3bfbbf8', 1795453682532999);
INSERT INTO public.schema_migrations VALUES ('gateway', 3, '0003_console', '1267420ea4e647c04667a6d3cd3a1d02076edc78ebc6b79903fedbed3210a9db', 1795453682580696);
INSERT INTO public.schema_migrations VALUES ('gateway', 4, '0004_sales', '9849a8bd6df520047d4e8d1bdbfb76579f749117c19577515935dfb56a3c40b6', 1795453682590354);
INSERT INTO public.schema_migrations VALUES ('gateway', 5, '0005_billing', 'b63781b7deb470318e895d78c2a41f4cc1352653a3c7f85d379ab49c258b6a82', 1795453682631808);
INSERT INTO public.sessions VALUES ('01a2096139cb99dec61088ed', '01a209611769344084dcf092', '\x20575b917eb6a307d895b3d182f67a54650864f3e6619c1b67fc418b8094faaa', '127.0.0.1', 'Python/3.11 aiohttp/3.14.5', 1795453696459839, 1795453696459839, 1796663296459839, NULL);
INSERT INTO public.tallies VALUES ('01a209611769344084dcf092', 'contacts', 1, 1);
INSERT INTO public.tallies VALUES ('01a209611769344084dcf092', 'contacts', 7, 1);
INSERT INTO public.tallies VALUES ('01a209611769344084dcf092', 'contacts', 2, 2);
INSERT INTO public.tallies VALUES ('01a209611769344084dcf092', 'contacts', 12, 1);
INSERT INTO public.users VALUES ('01a209611769344084dcf092', 'ana@example.com', 'ana@example.com', 'Ana', '$argon2id$v=19$m=19456,t=2,p=1$VF5XnBncoCQ4Fir/Wuc93Q$miZ9eoCI7Uu8a2lTAo5rApGlJz/G7k5p9HVmj585r/k', 'America/Sao_Paulo', NULL, 1795453687657678, 1795453687657678, 1);
INSERT INTO public.webhooks VALUES ('01a209613b44572ac1d905cb', '01a209611769344084dcf092', 2, 'http://127.0.0.1:47471/paused', '["contact.created"]', NULL, 'paused', NULL, false, NULL, NULL, NULL, '\x505b8297bce71b60d2fb774d6a1e81a1151af7f2e2d3f88e42bbe28800dcc3126473970f34ffda3f3b95df13264ccb00a558b23c04c661563b76404f9dc6960db8d8c3b63619e6f36010d18d59843d977555', NULL, NULL, NULL, 0, 1795453696836932, 1795453696883210, NULL, NULL, 0, NULL, NULL, NULL, 'closed', NULL, NULL);
INSERT INTO public.webhooks VALUES ('01a209613a9b06fb8245ecc0', '01a209611769344084dcf092', 1, 'http://127.0.0.1:47471/first', '["contact.created"]', NULL, 'active', NULL, false, NULL, NULL, NULL, '\x505b8297562d577acf50706ff83536c179e92dabbd9f25338aeb9880837d94f613bc1e61f981ff9a92b46c18338f6ddb51e94032a745a931f20c27f479c37aa04a1d863250841b7d644ba8c1856a97759773', NULL, NULL, NULL, 0, 1795453696667613, 1795453696667613, 1795453696961073, 1795453697008052, 3, 'http_5xx', 500, 1795453703525459, 'closed', NULL, NULL);
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
CREATE INDEX webhooks_owner ON public.webhooks USING btree (owner_id, created_at DESC, id DESC);
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
