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
CREATE FUNCTION public.count_reviews() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if tg_op <> 'INSERT' and old.status = 'published'
    and (tg_op = 'DELETE' or new.status <> 'published') then
    update review_totals set n = n - 1, stars = stars - old.stars
    where product_id = old.product_id;
  elsif tg_op <> 'DELETE' and new.status = 'published'
    and (tg_op = 'INSERT' or old.status <> 'published') then
    insert into review_totals as kept (product_id, n, stars)
    values (new.product_id, 1, new.stars)
    on conflict (product_id) do update set n = kept.n + 1, stars = kept.stars + excluded.stars;
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
CREATE TABLE public.carts (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    digest bytea,
    customer_id text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    lines text NOT NULL,
    coupon_id text COLLATE pg_catalog."C",
    cep text COLLATE pg_catalog."C",
    shipping_type text COLLATE pg_catalog."C",
    shipping_price bigint,
    order_id text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    touched_at bigint NOT NULL,
    expires_at bigint,
    ended_at bigint
);
CREATE TABLE public.categories (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    store_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    slug text COLLATE pg_catalog."C",
    parent_id text COLLATE pg_catalog."C",
    folded text NOT NULL COLLATE pg_catalog."C",
    sort_name text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.category_names (
    store_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.category_slugs (
    store_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.checkouts (
    store_id text NOT NULL COLLATE pg_catalog."C",
    visitor text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    fingerprint bytea NOT NULL,
    order_id text NOT NULL COLLATE pg_catalog."C",
    sealed bytea NOT NULL,
    created_at bigint NOT NULL
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
    sort_name text NOT NULL COLLATE pg_catalog."C",
    email_folded text COLLATE pg_catalog."C"
);
CREATE TABLE public.counters (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    series text NOT NULL COLLATE pg_catalog."C",
    n bigint NOT NULL
);
CREATE TABLE public.coupon_codes (
    store_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.coupon_uses (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    coupon_id text NOT NULL COLLATE pg_catalog."C",
    holder bytea NOT NULL,
    customer_id text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE TABLE public.coupons (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    store_id text NOT NULL COLLATE pg_catalog."C",
    code text NOT NULL,
    discount_percentage bigint,
    discount_value bigint,
    min_total bigint,
    max_uses bigint,
    per_customer bigint,
    starts_at bigint,
    ends_at bigint,
    active boolean NOT NULL,
    uses bigint NOT NULL,
    modal_id text COLLATE pg_catalog."C",
    folded text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.customer_addresses (
    id text NOT NULL COLLATE pg_catalog."C",
    customer_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    name text,
    street text NOT NULL,
    number text NOT NULL,
    complement text,
    district text,
    city text NOT NULL,
    state text NOT NULL,
    cep text NOT NULL
);
CREATE TABLE public.customer_emails (
    store_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.customer_identities (
    store_id text NOT NULL COLLATE pg_catalog."C",
    issuer text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    customer_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE TABLE public.customer_sessions (
    id text NOT NULL COLLATE pg_catalog."C",
    customer_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.customer_tokens (
    digest bytea NOT NULL,
    customer_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.customers (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    store_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    email text,
    phone text,
    email_verified boolean NOT NULL,
    accepts_marketing boolean NOT NULL,
    contact_id text COLLATE pg_catalog."C",
    password_hash text,
    folded text NOT NULL COLLATE pg_catalog."C",
    sort_name text NOT NULL COLLATE pg_catalog."C"
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
CREATE TABLE public.discount_modals (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    store_id text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    prefix text NOT NULL,
    discount_percentage bigint,
    discount_value bigint,
    valid_days bigint NOT NULL,
    active boolean NOT NULL,
    folded text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.duties (
    name text NOT NULL COLLATE pg_catalog."C",
    began_at bigint NOT NULL,
    ended_at bigint
);
CREATE TABLE public.ebooks (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    store_id text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    file_url text NOT NULL,
    active boolean NOT NULL,
    folded text NOT NULL COLLATE pg_catalog."C",
    sort_name text NOT NULL COLLATE pg_catalog."C"
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
CREATE TABLE public.figures (
    subject_id text NOT NULL COLLATE pg_catalog."C",
    span bigint NOT NULL,
    at bigint NOT NULL,
    result text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL,
    total_us bigint NOT NULL,
    t0 integer NOT NULL,
    t1 integer NOT NULL,
    t2 integer NOT NULL,
    t3 integer NOT NULL,
    t4 integer NOT NULL,
    t5 integer NOT NULL,
    t6 integer NOT NULL,
    t7 integer NOT NULL,
    t8 integer NOT NULL,
    t9 integer NOT NULL,
    t10 integer NOT NULL,
    t11 integer NOT NULL,
    t12 integer NOT NULL,
    t13 integer NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.first_account_links (
    digest bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.idempotency (
    owner_id text CONSTRAINT idempotency_owner_id_not_null1 NOT NULL COLLATE pg_catalog."C",
    key text CONSTRAINT idempotency_key_not_null1 NOT NULL COLLATE pg_catalog."C",
    operation text NOT NULL COLLATE pg_catalog."C",
    fingerprint bytea CONSTRAINT idempotency_fingerprint_not_null1 NOT NULL,
    outcome text,
    created_at bigint CONSTRAINT idempotency_created_at_not_null1 NOT NULL
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
CREATE TABLE public.mails (
    id text NOT NULL COLLATE pg_catalog."C",
    customer_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    attempts bigint NOT NULL,
    due_at bigint,
    failed_at bigint,
    error text
);
CREATE TABLE public.modal_coupons (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    modal_id text NOT NULL COLLATE pg_catalog."C",
    holder bytea NOT NULL,
    code text NOT NULL
);
CREATE TABLE public.nodes (
    id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    started_at bigint NOT NULL,
    alive_until bigint NOT NULL
);
CREATE TABLE public.order_tokens (
    digest bytea NOT NULL,
    order_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.orders (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    number text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    store_id text COLLATE pg_catalog."C",
    customer_id text COLLATE pg_catalog."C",
    items text NOT NULL,
    subtotal bigint NOT NULL,
    discount bigint NOT NULL,
    shipping bigint NOT NULL,
    total bigint NOT NULL,
    currency text NOT NULL,
    coupon text,
    shipping_option text,
    name text NOT NULL,
    email text NOT NULL,
    phone text,
    document text,
    address text,
    payment_method text NOT NULL COLLATE pg_catalog."C",
    notes text,
    expires_at bigint NOT NULL,
    paid_at bigint,
    canceled_at bigint,
    reason text,
    contact_id text COLLATE pg_catalog."C",
    invoice_id text COLLATE pg_catalog."C",
    deal_id text COLLATE pg_catalog."C",
    folded text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.outbox_state (
    id bigint NOT NULL,
    seq bigint NOT NULL,
    due_mark bigint NOT NULL,
    figures_since bigint DEFAULT 0 NOT NULL,
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
CREATE TABLE public.product_shelves (
    record_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    sort_name text NOT NULL COLLATE pg_catalog."C",
    price bigint NOT NULL
);
CREATE TABLE public.product_skus (
    owner_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.product_slugs (
    store_id text NOT NULL COLLATE pg_catalog."C",
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
CREATE TABLE public.review_claims (
    product_id text NOT NULL COLLATE pg_catalog."C",
    customer_id text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.review_quotas (
    customer_id text NOT NULL COLLATE pg_catalog."C",
    day bigint NOT NULL,
    n bigint NOT NULL
);
CREATE TABLE public.review_totals (
    product_id text NOT NULL COLLATE pg_catalog."C",
    n bigint NOT NULL,
    stars bigint NOT NULL
);
CREATE TABLE public.reviews (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    store_id text NOT NULL COLLATE pg_catalog."C",
    product_id text NOT NULL COLLATE pg_catalog."C",
    customer_id text COLLATE pg_catalog."C",
    author text,
    stars bigint NOT NULL,
    text text NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C"
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
CREATE TABLE public.stock_reservations (
    order_id text NOT NULL COLLATE pg_catalog."C",
    product_id text NOT NULL COLLATE pg_catalog."C",
    quantity bigint NOT NULL
);
CREATE TABLE public.store_hosts (
    value text NOT NULL COLLATE pg_catalog."C",
    record_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.stores (
    id text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    hostname text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    aliases text NOT NULL,
    allowed_origins text NOT NULL,
    idps text NOT NULL,
    shipping_rules text NOT NULL,
    cookie_same_site text NOT NULL COLLATE pg_catalog."C",
    deal_on_checkout boolean NOT NULL,
    review_moderation boolean NOT NULL,
    one_review_each boolean NOT NULL,
    pix_key text,
    active boolean NOT NULL,
    folded text NOT NULL COLLATE pg_catalog."C",
    sort_name text NOT NULL COLLATE pg_catalog."C",
    password_reset_url text,
    email_verification_url text
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
CREATE TABLE public.used_nonces (
    store_id text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
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
INSERT INTO public.api_keys VALUES ('01a20964010bd2f788bad4df', '01a20963fd95986eac026698', 'upgrade', 'crt_jqx8jjK9', '\xb3f8c4a8d746262bfc9e30faf3ebe64a5314671760e3d2cce506e0f53331f84d', '["read","write"]', NULL, 1795453878935052, NULL, 1795453878539789);
INSERT INTO public.attempts VALUES ('01a20963fd95986eac026698', '01a209640284db4a26d1ed96', '01a2096401fe6e22c6788b20', '01a20964027d6a36b3f623e2', 1, 'event', 'success', 200, NULL, 1795453878932013, NULL, 685, NULL, 965, 2240, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453878"],["X-Webhook-Signature","sha256=37b6946f1fa71abef52652d6eb53d732f027099499f73033f0802440e1ec349c"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20964027d6a36b3f623e2"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20964027d6a36b3f623e2"],["webhook-timestamp","1795453878"],["webhook-signature","v1,QxIZ3xaaD54HR9PCpFeDw/+q6UUqFNNHf9ePrWNFQAM="],["traceparent","00-784bf9920e7a910b1a1cbcd6dcd5a4a9-2488fc91df0a9cfd-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:11:18 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20963f760b56d560d54e5');
INSERT INTO public.attempts VALUES ('01a20963fd95986eac026698', '01a2096402a42355d9122647', '01a2096401fe6e22c6788b20', '01a2096402973f7fa6ed9a48', 1, 'event', 'http_5xx', 500, NULL, 1795453878958209, NULL, NULL, NULL, 982, 1378, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453878"],["X-Webhook-Signature","sha256=9c69c9e7f0ea9d42e8388e3aa769bd83f300f9d77119d79da95f77f348d9afb1"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a2096402973f7fa6ed9a48"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a2096402973f7fa6ed9a48"],["webhook-timestamp","1795453878"],["webhook-signature","v1,9Wdkucks3t4kE8gNJtWKbKXIEBUfFDj70dxrsJaUzqI="],["traceparent","00-56c5c581a29da4aa961230b8c19c555b-909906831f70c40c-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:11:18 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20963f760b56d560d54e5');
INSERT INTO public.attempts VALUES ('01a20963fd95986eac026698', '01a2096402a42355d9122647', '01a2096401fe6e22c6788b20', '01a2096402973f7fa6ed9a48', 2, 'event', 'http_5xx', 500, NULL, 1795453879063035, NULL, NULL, NULL, 700, 1065, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453878"],["X-Webhook-Signature","sha256=9c69c9e7f0ea9d42e8388e3aa769bd83f300f9d77119d79da95f77f348d9afb1"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a2096402973f7fa6ed9a48"],["X-Webhook-Attempt","2"],["X-Webhook-Record-Version","1"],["webhook-id","01a2096402973f7fa6ed9a48"],["webhook-timestamp","1795453879"],["webhook-signature","v1,UOGTZOuY9IWBy3z9a3MMOEhbVrTeqDEWgbA8mQnimxU="],["traceparent","00-56c5c581a29da4aa961230b8c19c555b-2e3abc624ecc9cee-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:11:19 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a20963f760b56d560d54e5');
INSERT INTO public.attempts VALUES ('01a20963fd95986eac026698', '01a2096413900ee2a4ce3637', '01a2096401fe6e22c6788b20', '01a20964137e6df23ddbcd00', 1, 'event', 'http_5xx', 500, NULL, 1795453883332177, NULL, 3599, NULL, 2236, 7359, '127.0.0.1:47471', 'http://127.0.0.1:47471/first', '[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453883"],["X-Webhook-Signature","sha256=b78e0a596570a3a92feb06ca68066578f4e0ddac27d8f06e10189644f5ce8821"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20964137e6df23ddbcd00"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20964137e6df23ddbcd00"],["webhook-timestamp","1795453883"],["webhook-signature","v1,n1VUqiJhATesqoaWlg2lJhH2VqLFIEbl79CAygnM9BI="],["traceparent","00-f89ceae03dc9099c34987f1eecc57101-11e7899ba4646f63-01"]]', '[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:11:23 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]', '\x', false, '01a209641320fb06767baefd');
INSERT INTO public.contacts VALUES ('01a20964027d57fa86c27299', '01a20963fd95986eac026698', 1, 1795453878909040, NULL, 'Delivered', 'delivered@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'delivereddelivered@example.com', 'delivered', 'delivered@example.com');
INSERT INTO public.contacts VALUES ('01a209640297d6b1642fcdf7', '01a20963fd95986eac026698', 1, 1795453878935578, NULL, 'Exhausted', 'exhausted@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'exhaustedexhausted@example.com', 'exhausted', 'exhausted@example.com');
INSERT INTO public.contacts VALUES ('01a20964137e7f02cfdf66ab', '01a20963fd95986eac026698', 1, 1795453883262639, NULL, 'Waiting', 'waiting@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'waitingwaiting@example.com', 'waiting', 'waiting@example.com');
INSERT INTO public.contacts VALUES ('01a2096413cddee715f548aa', '01a20963fd95986eac026698', 1, 1795453883341083, NULL, 'Hanging', 'hanging@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'hanginghanging@example.com', 'hanging', 'hanging@example.com');
INSERT INTO public.contacts VALUES ('01a20964140d44a71c805fef', '01a20963fd95986eac026698', 1, 1795453883405657, NULL, 'Unclaimed', 'unclaimed@example.com', NULL, NULL, NULL, NULL, NULL, '[]', 'api', NULL, 'unclaimedunclaimed@example.com', 'unclaimed', 'unclaimed@example.com');
INSERT INTO public.deliveries VALUES ('01a209640284a5777f8720f6', '01a20963fd95986eac026698', '01a20964027d6a36b3f623e2', '01a20964024d762c937e38e7', 'event', 'ready', NULL, false, 1795453878923241, 0, 0, NULL, NULL, '01a20964027d57fa86c27299', 1, 1795453878916082, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209640284db4a26d1ed96', '01a20963fd95986eac026698', '01a20964027d6a36b3f623e2', '01a2096401fe6e22c6788b20', 'event', 'delivered', 'success', true, 1795453878940623, 1, 1, NULL, NULL, '01a20964027d57fa86c27299', 1, 1795453878916082, 1795453878938667, 'success', 200, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096402a424aef7c8df93', '01a20963fd95986eac026698', '01a2096402973f7fa6ed9a48', '01a20964024d762c937e38e7', 'event', 'ready', NULL, false, 1795453878954067, 0, 0, NULL, NULL, '01a209640297d6b1642fcdf7', 2, 1795453878948675, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096402a42355d9122647', '01a20963fd95986eac026698', '01a2096402973f7fa6ed9a48', '01a2096401fe6e22c6788b20', 'event', 'exhausted', 'http_5xx', true, 1795453879067680, 2, 2, NULL, NULL, '01a209640297d6b1642fcdf7', 2, 1795453878948675, 1795453879064985, 'http_5xx', 500, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209641390fede099547b3', '01a20963fd95986eac026698', '01a20964137e6df23ddbcd00', '01a20964024d762c937e38e7', 'event', 'ready', NULL, false, 1795453883300753, 0, 0, NULL, NULL, '01a20964137e7f02cfdf66ab', 3, 1795453883280576, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096413900ee2a4ce3637', '01a20963fd95986eac026698', '01a20964137e6df23ddbcd00', '01a2096401fe6e22c6788b20', 'event', 'ready', 'http_5xx', true, 1795453952230243, 1, 1, NULL, NULL, '01a20964137e7f02cfdf66ab', 3, 1795453883280576, NULL, 'http_5xx', 500, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096413dff023dc9659ae', '01a20963fd95986eac026698', '01a2096413cdae89abf625fb', '01a20964024d762c937e38e7', 'event', 'ready', NULL, false, 1795453883376137, 0, 0, NULL, NULL, '01a2096413cddee715f548aa', 4, 1795453883359253, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096413df622d374a831d', '01a20963fd95986eac026698', '01a2096413cdae89abf625fb', '01a2096401fe6e22c6788b20', 'event', 'in_flight', NULL, false, 1795453883376137, 0, 1, '01a209641320fb06767baefd-6', '01a209641320fb06767baefd', '01a2096413cddee715f548aa', 4, 1795453883359253, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a2096414106b9c2f398217', '01a20963fd95986eac026698', '01a20964140d73721de041cc', '01a2096401fe6e22c6788b20', 'event', 'ready', NULL, false, 1795453883411918, 0, 0, NULL, NULL, '01a20964140d44a71c805fef', 5, 1795453883408941, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.deliveries VALUES ('01a209641410f91cbf320005', '01a20963fd95986eac026698', '01a20964140d73721de041cc', '01a20964024d762c937e38e7', 'event', 'ready', NULL, false, 1795453883411918, 0, 0, NULL, NULL, '01a20964140d44a71c805fef', 5, 1795453883408941, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (1, '01a20964027d6a36b3f623e2', 1, '01a20963fd95986eac026698', 'contact.created', '01a20964027d57fa86c27299', 1, NULL, 1795453878909040, '01a20964027b2a0b0a6c2833', '00-784bf9920e7a910b1a1cbcd6dcd5a4a9-0bede130bf1163cc-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333837382c2264617461223a7b226964223a22303161323039363430323764353766613836633237323939222c226e616d65223a2244656c697665726564222c22656d61696c223a2264656c697665726564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31313a31382e3930395a227d7d', '7d0e8f7f261f4cee0cf434c5e3ee7af9e5c9b0dfcdbb52d8823ff0072da00856', NULL, '791');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (2, '01a2096402973f7fa6ed9a48', 2, '01a20963fd95986eac026698', 'contact.created', '01a209640297d6b1642fcdf7', 1, NULL, 1795453878935578, '01a209640296f9f8f33b06be', '00-56c5c581a29da4aa961230b8c19c555b-787e583da8a14b1f-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333837382c2264617461223a7b226964223a22303161323039363430323937643662313634326663646637222c226e616d65223a22457868617573746564222c22656d61696c223a22657868617573746564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31313a31382e3933355a227d7d', '1c96d764928a367b4a714055300d115864178c584a6b64b77ac584ca895df0b7', NULL, '794');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (3, '01a20964137e6df23ddbcd00', 3, '01a20963fd95986eac026698', 'contact.created', '01a20964137e7f02cfdf66ab', 1, NULL, 1795453883262639, '01a209641370f8ccfcf0a756', '00-f89ceae03dc9099c34987f1eecc57101-b1d655d024342bbe-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333838332c2264617461223a7b226964223a22303161323039363431333765376630326366646636366162222c226e616d65223a2257616974696e67222c22656d61696c223a2277616974696e67406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31313a32332e3236325a227d7d', 'c3ccb6f1c27e94395bc41a54370e462910589066e2f8ead8026dc65ac60a3472', NULL, '805');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (4, '01a2096413cdae89abf625fb', 4, '01a20963fd95986eac026698', 'contact.created', '01a2096413cddee715f548aa', 1, NULL, 1795453883341083, '01a2096413cc4a0831fcb87c', '00-3e289a574ea9f0dd5fcb8cdf264626df-6e4d88bbc9f0836a-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333838332c2264617461223a7b226964223a22303161323039363431336364646565373135663534386161222c226e616d65223a2248616e67696e67222c22656d61696c223a2268616e67696e67406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31313a32332e3334315a227d7d', '9f4cad7c2ebbfbfb7a622e17d13fe459df6c90b1cef0b4d77e06faf12c080721', NULL, '810');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (5, '01a20964140d73721de041cc', 5, '01a20963fd95986eac026698', 'contact.created', '01a20964140d44a71c805fef', 1, NULL, 1795453883405657, '01a20964140cba3370139b15', '00-8f6e0d1d4e8d7dedc08f0a9cac273c45-63668a58e3a1c4fd-01', '\x7b226576656e74223a22636f6e746163742e63726561746564222c2274696d657374616d70223a313739353435333838332c2264617461223a7b226964223a22303161323039363431343064343461373163383035666566222c226e616d65223a22556e636c61696d6564222c22656d61696c223a22756e636c61696d6564406578616d706c652e636f6d222c2270686f6e65223a6e756c6c2c22637265617465644174223a22323032362d31312d32335431373a31313a32332e3430355a227d7d', 'a7a6343c596027571c6d2fd49846ca20513e98e94b1020d7e2f30d9150af15dc', NULL, '815');
INSERT INTO public.figures VALUES ('01a2096401fe6e22c6788b20', 300000000, 1795453800000000, 'success', 1, 2240, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO public.figures VALUES ('01a2096401fe6e22c6788b20', 300000000, 1795453800000000, 'exhausted', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO public.figures VALUES ('01a2096401fe6e22c6788b20', 300000000, 1795453800000000, 'http_5xx', 3, 9802, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO public.figures VALUES ('01a20963fd95986eac026698', 300000000, 1795453800000000, 'event', 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO public.first_account_links VALUES ('\x9095499180273457b680839aba6aaff5aed806812d375fd196f2becd4f7cb894', 1795453876134731, 1795540276134731);
INSERT INTO public.lanes VALUES ('01a20964024d762c937e38e7', '01a20963fd95986eac026698', false, false, 1795453877923241, 0, 0, 0);
INSERT INTO public.lanes VALUES ('01a2096401fe6e22c6788b20', '01a20963fd95986eac026698', true, true, 1795453913417324, 0, 1795453883417324, 3);
INSERT INTO public.nodes VALUES ('01a209641320fb06767baefd', 1, 1795453883256751, 1795453913258389);
INSERT INTO public.outbox_state VALUES (1, 5, 0, 1795453875826606);
INSERT INTO public.schema_migrations VALUES ('outbox', 1, '0001_outbox', '479a14000f7ee946a5f5833f27b90d23062191c185d9cfdd07db27e816fad7b2', 1795453875789958);
INSERT INTO public.schema_migrations VALUES ('outbox', 2, '0002_turns', '9a53cf041992be067f18b45867d72045e49b96f0b19191dbc7f578ee78f73a0e', 1795453875812456);
INSERT INTO public.schema_migrations VALUES ('outbox', 3, '0003_duties', 'd5ff5d160f013fa55a2699878a06b21c83be969f2eb542f4b1a18c9ef1da849d', 1795453875817383);
INSERT INTO public.schema_migrations VALUES ('outbox', 4, '0004_figures', '82b8b17f763130b0f942a51ef74a324a8d6cc739db821cf9fef5898d01508d2d', 1795453875823717);
INSERT INTO public.schema_migrations VALUES ('gateway', 1, '0001_accounts', '8c5efd9698b1be38a8319d08f0e5592261f93d5abc7945d62d01fcbc3b9fbae7', 1795453875829639);
INSERT INTO public.schema_migrations VALUES ('gateway', 2, '0002_crm', 'a0f2469e19deab6b14ecd39a77508e19c7d7cc910487052300a3d3f6c3bfbbf8', 1795453875838182);
INSERT INTO public.schema_migrations VALUES ('gateway', 3, '0003_console', '1267420ea4e647c04667a6d3cd3a1d02076edc78ebc6b79903fedbed3210a9db', 1795453875850180);
INSERT INTO public.schema_migrations VALUES ('gateway', 4, '0004_sales', '9849a8bd6df520047d4e8d1bdbfb76579f749117c19577515935dfb56a3c40b6', 1795453875855681);
INSERT INTO public.schema_migrations VALUES ('gateway', 5, '0005_billing', 'ca08f492f8ceff8578c1ea189caa99fed5531cdbd8526b2219ecf9ca6402fb9b', 1795453875874737);
INSERT INTO public.schema_migrations VALUES ('gateway', 6, '0006_duties', 'a41674b7f80fe1b2fd7558ae8c8e39d92f2b10485159d3b3ea5fea558ad647b7', 1795453875894846);
INSERT INTO public.schema_migrations VALUES ('gateway', 7, '0007_pending_ends', 'c7d2585e20f86e5e867b919ab9fc5898fee88413e80f28c34241a523b3e11d8f', 1795453875896238);
INSERT INTO public.schema_migrations VALUES ('gateway', 8, '0008_stores', '35bde929300965617079709a57ee8f825bf15dd04aae99651228f74c5aab3941', 1795453875898256);
INSERT INTO public.schema_migrations VALUES ('gateway', 9, '0009_outcomes', 'a1dd2667fffca60aa4f43367022b1bedf661a41dc7c520226c92d66e70bebd89', 1795453875903048);
INSERT INTO public.schema_migrations VALUES ('gateway', 10, '0010_contact_emails', '38151769be9a9b8b805e4d557f4c536e0ab030bd3cf03e14e242a37c470fa3fb', 1795453875909040);
INSERT INTO public.schema_migrations VALUES ('gateway', 11, '0011_contact_emails_folded', '639ec4107ab0341b831036f906cec4fb715a32a4a9f7eb6e84d566a38fd34735', 1795453875910873);
INSERT INTO public.schema_migrations VALUES ('gateway', 12, '0012_ebooks', 'cc67e88a2ed16f693baca5ef55382d56044db1a43fc91362af56312244c06549', 1795453875912436);
INSERT INTO public.schema_migrations VALUES ('gateway', 13, '0013_carts', '01e2d32a30b3fa073d55b2772404b57767d6241c330219816cd4dc6136423ac6', 1795453875916196);
INSERT INTO public.schema_migrations VALUES ('gateway', 14, '0014_catalogue', '6a1ca8ebd65e7408c09ded4bca6e9cf76e5fe52849fc41f09a8f3c93644620f1', 1795453875936945);
INSERT INTO public.schema_migrations VALUES ('gateway', 15, '0015_customers', '4ebcde197f9a3ac3055e50f06731898b8176b32ecb313fed605c13e972f71b0e', 1795453875955990);
INSERT INTO public.schema_migrations VALUES ('gateway', 16, '0016_orders', '4ae990c71727b999b377bb074861e06c82ea328addc853e09acd55fc06414aed', 1795453875983442);
INSERT INTO public.schema_migrations VALUES ('gateway', 17, '0017_reviews', 'e12da897894db70ffb2d98fed051fb3bce86aa76e2fb41c8c1803b946c4a63c3', 1795453875999417);
INSERT INTO public.sessions VALUES ('01a20964019ee872d24c344e', '01a20963fd95986eac026698', '\xe48b68e2342c50a6c62986686e1902e54903404a911b5145a0103e1fbb5ae15e', '127.0.0.1', 'Python/3.11 aiohttp/3.14.5', 1795453878686503, 1795453878686503, 1796663478686503, NULL);
INSERT INTO public.tallies VALUES ('01a20963fd95986eac026698', 'contacts', 9, 1);
INSERT INTO public.tallies VALUES ('01a20963fd95986eac026698', 'contacts', 7, 1);
INSERT INTO public.tallies VALUES ('01a20963fd95986eac026698', 'contacts', 11, 1);
INSERT INTO public.tallies VALUES ('01a20963fd95986eac026698', 'contacts', 10, 1);
INSERT INTO public.tallies VALUES ('01a20963fd95986eac026698', 'contacts', 15, 1);
INSERT INTO public.users VALUES ('01a20963fd95986eac026698', 'ana@example.com', 'ana@example.com', 'Ana', '$argon2id$v=19$m=19456,t=2,p=1$c65yVoF8yxZ54VvVYV9dUQ$SsKEQVbL845ar3kPorCETWbnHkFYh6calaONGtJ/E3Y', 'America/Sao_Paulo', NULL, 1795453877653248, 1795453877653248, 1);
INSERT INTO public.webhooks VALUES ('01a20964024d762c937e38e7', '01a20963fd95986eac026698', 2, 'http://127.0.0.1:47471/paused', '["contact.created"]', NULL, 'paused', NULL, false, NULL, NULL, NULL, '\x505b8297523c1a4a8fef6f84b09f1c3ff1ca52a2a04ac799bb73c21e19f3c9d3e17c7cf9413746ec1cebd276b40459267aae00b76ef066b4fdb2d4e38ea11fb0127a46a91d020699623824f7eefea725bb0f', NULL, NULL, NULL, 0, 1795453878861307, 1795453878892929, NULL, NULL, 0, NULL, NULL, NULL, 'closed', NULL, NULL, NULL);
INSERT INTO public.webhooks VALUES ('01a2096401fe6e22c6788b20', '01a20963fd95986eac026698', 1, 'http://127.0.0.1:47471/first', '["contact.created"]', NULL, 'active', NULL, false, NULL, NULL, NULL, '\x505b8297f29e86b3af4d7a9e81b3a176e5011ad0fe5b94007493c4719b41dd6b085d60a7c7a29070b5677e68b6ed3382bb485c115e904061bdbaef3b63d75e0544309811ec624aa3ba5c8a4b8ca374d2a79c', NULL, NULL, NULL, 0, 1795453878782022, 1795453878782022, 1795453878938667, 1795453878960629, 3, 'http_5xx', 500, 1795453883353110, 'closed', NULL, NULL, NULL);
ALTER TABLE ONLY public.activities
    ADD CONSTRAINT activities_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (delivery_id, number);
ALTER TABLE ONLY public.carts
    ADD CONSTRAINT carts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.categories
    ADD CONSTRAINT categories_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.category_names
    ADD CONSTRAINT category_names_pkey PRIMARY KEY (store_id, value);
ALTER TABLE ONLY public.category_slugs
    ADD CONSTRAINT category_slugs_pkey PRIMARY KEY (store_id, value);
ALTER TABLE ONLY public.checkouts
    ADD CONSTRAINT checkouts_pkey PRIMARY KEY (store_id, visitor, key);
ALTER TABLE ONLY public.companies
    ADD CONSTRAINT companies_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.contact_tags
    ADD CONSTRAINT contact_tags_pkey PRIMARY KEY (owner_id, value, record_id);
ALTER TABLE ONLY public.contacts
    ADD CONSTRAINT contacts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.counters
    ADD CONSTRAINT counters_pkey PRIMARY KEY (owner_id, series);
ALTER TABLE ONLY public.coupon_codes
    ADD CONSTRAINT coupon_codes_pkey PRIMARY KEY (store_id, value);
ALTER TABLE ONLY public.coupon_uses
    ADD CONSTRAINT coupon_uses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.coupons
    ADD CONSTRAINT coupons_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.customer_addresses
    ADD CONSTRAINT customer_addresses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.customer_emails
    ADD CONSTRAINT customer_emails_pkey PRIMARY KEY (store_id, value);
ALTER TABLE ONLY public.customer_identities
    ADD CONSTRAINT customer_identities_pkey PRIMARY KEY (store_id, issuer, subject);
ALTER TABLE ONLY public.customer_sessions
    ADD CONSTRAINT customer_sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.customer_tokens
    ADD CONSTRAINT customer_tokens_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.customers
    ADD CONSTRAINT customers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.deal_contacts
    ADD CONSTRAINT deal_contacts_pkey PRIMARY KEY (owner_id, value, record_id);
ALTER TABLE ONLY public.deal_totals
    ADD CONSTRAINT deal_totals_pkey PRIMARY KEY (owner_id, stage, status, slot);
ALTER TABLE ONLY public.deals
    ADD CONSTRAINT deals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.discount_modals
    ADD CONSTRAINT discount_modals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.duties
    ADD CONSTRAINT duties_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.ebooks
    ADD CONSTRAINT ebooks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_id_key UNIQUE (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (pos);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_seq_key UNIQUE (seq);
ALTER TABLE ONLY public.figures
    ADD CONSTRAINT figures_pkey PRIMARY KEY (subject_id, at, span, result);
ALTER TABLE ONLY public.first_account_links
    ADD CONSTRAINT first_account_links_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey1 PRIMARY KEY (owner_id, key, operation);
ALTER TABLE ONLY public.invoices
    ADD CONSTRAINT invoices_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.lanes
    ADD CONSTRAINT lanes_pkey PRIMARY KEY (webhook_id);
ALTER TABLE ONLY public.mails
    ADD CONSTRAINT mails_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.modal_coupons
    ADD CONSTRAINT modal_coupons_modal_id_holder_key UNIQUE (modal_id, holder);
ALTER TABLE ONLY public.modal_coupons
    ADD CONSTRAINT modal_coupons_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.order_tokens
    ADD CONSTRAINT order_tokens_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.outbox_state
    ADD CONSTRAINT outbox_state_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pending_ends
    ADD CONSTRAINT pending_ends_pkey PRIMARY KEY (owner_id, record_id);
ALTER TABLE ONLY public.pipelines
    ADD CONSTRAINT pipelines_pkey PRIMARY KEY (owner_id);
ALTER TABLE ONLY public.product_categories
    ADD CONSTRAINT product_categories_pkey PRIMARY KEY (owner_id, value, record_id);
ALTER TABLE ONLY public.product_shelves
    ADD CONSTRAINT product_shelves_pkey PRIMARY KEY (record_id, value);
ALTER TABLE ONLY public.product_skus
    ADD CONSTRAINT product_skus_pkey PRIMARY KEY (owner_id, value);
ALTER TABLE ONLY public.product_slugs
    ADD CONSTRAINT product_slugs_pkey PRIMARY KEY (store_id, value);
ALTER TABLE ONLY public.products
    ADD CONSTRAINT products_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.quotes
    ADD CONSTRAINT quotes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.review_claims
    ADD CONSTRAINT review_claims_pkey PRIMARY KEY (product_id, customer_id);
ALTER TABLE ONLY public.review_quotas
    ADD CONSTRAINT review_quotas_pkey PRIMARY KEY (customer_id);
ALTER TABLE ONLY public.review_totals
    ADD CONSTRAINT review_totals_pkey PRIMARY KEY (product_id);
ALTER TABLE ONLY public.reviews
    ADD CONSTRAINT reviews_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (component, number);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.stock_reservations
    ADD CONSTRAINT stock_reservations_pkey PRIMARY KEY (order_id, product_id);
ALTER TABLE ONLY public.store_hosts
    ADD CONSTRAINT store_hosts_pkey PRIMARY KEY (value);
ALTER TABLE ONLY public.stores
    ADD CONSTRAINT stores_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tallies
    ADD CONSTRAINT tallies_pkey PRIMARY KEY (owner_id, kind, slot);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.used_nonces
    ADD CONSTRAINT used_nonces_pkey PRIMARY KEY (store_id, digest);
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
CREATE UNIQUE INDEX carts_customer ON public.carts USING btree (store_id, customer_id) WHERE ((customer_id IS NOT NULL) AND (state = 'active'::text));
CREATE INDEX carts_ended ON public.carts USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX carts_expiring ON public.carts USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX carts_of_customer ON public.carts USING btree (store_id, customer_id) WHERE (customer_id IS NOT NULL);
CREATE INDEX carts_of_store ON public.carts USING btree (owner_id, store_id);
CREATE UNIQUE INDEX carts_visitor ON public.carts USING btree (store_id, digest) WHERE (digest IS NOT NULL);
CREATE INDEX categories_changed ON public.categories USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX categories_name ON public.categories USING btree (owner_id, sort_name, id);
CREATE INDEX categories_newest ON public.categories USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX categories_parent ON public.categories USING btree (owner_id, parent_id) WHERE (parent_id IS NOT NULL);
CREATE INDEX categories_store ON public.categories USING btree (owner_id, store_id, sort_name, id);
CREATE INDEX category_names_record ON public.category_names USING btree (record_id);
CREATE INDEX category_slugs_record ON public.category_slugs USING btree (record_id);
CREATE INDEX checkouts_created ON public.checkouts USING btree (created_at);
CREATE INDEX companies_changed ON public.companies USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX companies_cnpj ON public.companies USING btree (owner_id, cnpj_normal) WHERE (cnpj_normal IS NOT NULL);
CREATE INDEX companies_name ON public.companies USING btree (owner_id, sort_name, id);
CREATE INDEX companies_newest ON public.companies USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX contact_tags_record ON public.contact_tags USING btree (record_id);
CREATE INDEX contacts_changed ON public.contacts USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX contacts_company ON public.contacts USING btree (owner_id, company_id) WHERE (company_id IS NOT NULL);
CREATE INDEX contacts_email ON public.contacts USING btree (owner_id, email_folded, created_at, id) WHERE (email_folded IS NOT NULL);
CREATE INDEX contacts_name ON public.contacts USING btree (owner_id, sort_name, id);
CREATE INDEX contacts_newest ON public.contacts USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX contacts_unfolded ON public.contacts USING btree (id) WHERE ((email IS NOT NULL) AND (email_folded IS NULL));
CREATE INDEX coupon_codes_record ON public.coupon_codes USING btree (record_id);
CREATE INDEX coupon_uses_coupon ON public.coupon_uses USING btree (owner_id, coupon_id);
CREATE INDEX coupon_uses_customer ON public.coupon_uses USING btree (coupon_id, customer_id) WHERE (customer_id IS NOT NULL);
CREATE INDEX coupon_uses_holder ON public.coupon_uses USING btree (coupon_id, holder);
CREATE INDEX coupons_changed ON public.coupons USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX coupons_modal ON public.coupons USING btree (owner_id, modal_id, created_at DESC, id DESC) WHERE (modal_id IS NOT NULL);
CREATE INDEX coupons_newest ON public.coupons USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX coupons_store ON public.coupons USING btree (owner_id, store_id, created_at DESC, id DESC);
CREATE INDEX coupons_unused ON public.coupons USING btree (ends_at) WHERE ((modal_id IS NOT NULL) AND (uses = 0));
CREATE INDEX customer_addresses_customer ON public.customer_addresses USING btree (customer_id, created_at, id);
CREATE INDEX customer_emails_record ON public.customer_emails USING btree (record_id);
CREATE INDEX customer_identities_customer ON public.customer_identities USING btree (customer_id);
CREATE INDEX customer_sessions_customer ON public.customer_sessions USING btree (customer_id, created_at, id);
CREATE INDEX customer_sessions_expiring ON public.customer_sessions USING btree (expires_at);
CREATE INDEX customer_tokens_customer ON public.customer_tokens USING btree (customer_id, kind);
CREATE INDEX customer_tokens_expiring ON public.customer_tokens USING btree (expires_at);
CREATE INDEX customers_changed ON public.customers USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX customers_contact ON public.customers USING btree (owner_id, contact_id) WHERE (contact_id IS NOT NULL);
CREATE INDEX customers_name ON public.customers USING btree (owner_id, sort_name, id);
CREATE INDEX customers_newest ON public.customers USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX customers_store ON public.customers USING btree (owner_id, store_id, created_at DESC, id DESC);
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
CREATE INDEX discount_modals_changed ON public.discount_modals USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX discount_modals_newest ON public.discount_modals USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX discount_modals_store ON public.discount_modals USING btree (owner_id, store_id, created_at DESC, id DESC);
CREATE INDEX ebooks_changed ON public.ebooks USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX ebooks_newest ON public.ebooks USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX ebooks_store ON public.ebooks USING btree (owner_id, store_id);
CREATE INDEX ebooks_title ON public.ebooks USING btree (owner_id, sort_name, id);
CREATE INDEX events_feed ON public.events USING btree (owner_id, seq) WHERE ((webhook_id IS NULL) AND (seq IS NOT NULL));
CREATE INDEX events_record ON public.events USING btree (owner_id, record_id, pos);
CREATE INDEX events_unseen ON public.events USING btree (pos) WHERE (seq IS NULL);
CREATE INDEX figures_age ON public.figures USING btree (span, at);
CREATE INDEX idempotency_old ON public.idempotency USING btree (created_at);
CREATE INDEX invoices_changed ON public.invoices USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX invoices_company ON public.invoices USING btree (owner_id, company_id) WHERE (company_id IS NOT NULL);
CREATE INDEX invoices_contact ON public.invoices USING btree (owner_id, contact_id) WHERE (contact_id IS NOT NULL);
CREATE INDEX invoices_deal ON public.invoices USING btree (owner_id, deal_id) WHERE (deal_id IS NOT NULL);
CREATE INDEX invoices_due ON public.invoices USING btree (owner_id, due_at, id);
CREATE INDEX invoices_newest ON public.invoices USING btree (owner_id, created_at DESC, id DESC, status, due_at, due_day, total);
CREATE UNIQUE INDEX invoices_number ON public.invoices USING btree (owner_id, number);
CREATE INDEX invoices_order ON public.invoices USING btree (owner_id, order_id) WHERE (order_id IS NOT NULL);
CREATE INDEX invoices_owed ON public.invoices USING btree (owner_id, due_at, due_day, total) WHERE (status = 'pending'::text);
CREATE INDEX invoices_paid ON public.invoices USING btree (owner_id, paid_at, total) WHERE (paid_at IS NOT NULL);
CREATE INDEX invoices_quote ON public.invoices USING btree (owner_id, quote_id) WHERE (quote_id IS NOT NULL);
CREATE INDEX lanes_due ON public.lanes USING btree (failing, due_at) WHERE (active AND (due_at IS NOT NULL));
CREATE INDEX mails_customer ON public.mails USING btree (customer_id);
CREATE INDEX mails_due ON public.mails USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX mails_failed ON public.mails USING btree (failed_at) WHERE (failed_at IS NOT NULL);
CREATE INDEX modal_coupons_modal ON public.modal_coupons USING btree (owner_id, modal_id);
CREATE INDEX order_tokens_order ON public.order_tokens USING btree (order_id);
CREATE INDEX orders_changed ON public.orders USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX orders_contact ON public.orders USING btree (owner_id, contact_id) WHERE (contact_id IS NOT NULL);
CREATE INDEX orders_customer ON public.orders USING btree (owner_id, customer_id, created_at DESC, id DESC) WHERE (customer_id IS NOT NULL);
CREATE INDEX orders_deal ON public.orders USING btree (owner_id, deal_id) WHERE (deal_id IS NOT NULL);
CREATE INDEX orders_expiring ON public.orders USING btree (expires_at) WHERE (status = 'pending'::text);
CREATE INDEX orders_expiry ON public.orders USING btree (owner_id, expires_at, id);
CREATE INDEX orders_newest ON public.orders USING btree (owner_id, created_at DESC, id DESC, status);
CREATE UNIQUE INDEX orders_number ON public.orders USING btree (owner_id, number);
CREATE INDEX orders_store ON public.orders USING btree (owner_id, store_id, created_at DESC, id DESC);
CREATE INDEX product_categories_record ON public.product_categories USING btree (record_id);
CREATE INDEX product_shelves_name ON public.product_shelves USING btree (store_id, value, sort_name, record_id);
CREATE INDEX product_shelves_newest ON public.product_shelves USING btree (store_id, value, created_at DESC, record_id DESC);
CREATE INDEX product_shelves_price ON public.product_shelves USING btree (store_id, value, price, record_id);
CREATE INDEX product_skus_record ON public.product_skus USING btree (record_id);
CREATE INDEX product_slugs_record ON public.product_slugs USING btree (record_id);
CREATE INDEX products_changed ON public.products USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX products_name ON public.products USING btree (owner_id, sort_name, id);
CREATE INDEX products_newest ON public.products USING btree (owner_id, created_at DESC, id DESC, folded);
CREATE INDEX products_price ON public.products USING btree (owner_id, price, id);
CREATE INDEX products_store ON public.products USING btree (owner_id, store_id) WHERE (store_id IS NOT NULL);
CREATE INDEX quotes_changed ON public.quotes USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX quotes_company ON public.quotes USING btree (owner_id, company_id) WHERE (company_id IS NOT NULL);
CREATE INDEX quotes_contact ON public.quotes USING btree (owner_id, contact_id) WHERE (contact_id IS NOT NULL);
CREATE INDEX quotes_deal ON public.quotes USING btree (owner_id, deal_id) WHERE (deal_id IS NOT NULL);
CREATE INDEX quotes_lapsing ON public.quotes USING btree (lapses_at) WHERE ((status = 'sent'::text) AND (lapses_at IS NOT NULL));
CREATE INDEX quotes_newest ON public.quotes USING btree (owner_id, created_at DESC, id DESC, status, valid_until, valid_day);
CREATE UNIQUE INDEX quotes_number ON public.quotes USING btree (owner_id, number);
CREATE INDEX review_claims_record ON public.review_claims USING btree (record_id);
CREATE INDEX review_quotas_day ON public.review_quotas USING btree (day);
CREATE INDEX reviews_changed ON public.reviews USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX reviews_customer ON public.reviews USING btree (customer_id, product_id) WHERE (customer_id IS NOT NULL);
CREATE INDEX reviews_newest ON public.reviews USING btree (owner_id, created_at DESC, id DESC);
CREATE INDEX reviews_product ON public.reviews USING btree (owner_id, product_id, created_at DESC, id DESC);
CREATE INDEX reviews_published ON public.reviews USING btree (product_id, created_at DESC, id DESC) WHERE (status = 'published'::text);
CREATE INDEX reviews_status ON public.reviews USING btree (owner_id, status, created_at DESC, id DESC);
CREATE INDEX reviews_store ON public.reviews USING btree (owner_id, store_id, created_at DESC, id DESC);
CREATE INDEX sessions_old ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_owner ON public.sessions USING btree (owner_id, seen_at DESC);
CREATE INDEX store_hosts_record ON public.store_hosts USING btree (record_id);
CREATE INDEX stores_changed ON public.stores USING btree (owner_id, COALESCE(updated_at, created_at), id);
CREATE INDEX stores_name ON public.stores USING btree (owner_id, sort_name, id);
CREATE INDEX stores_newest ON public.stores USING btree (owner_id, created_at DESC, id DESC, folded);
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
CREATE INDEX used_nonces_expiring ON public.used_nonces USING btree (expires_at);
CREATE INDEX webhooks_old_secret ON public.webhooks USING btree (old_secret_until) WHERE (old_secret_until IS NOT NULL);
CREATE INDEX webhooks_owner ON public.webhooks USING btree (owner_id, created_at DESC, id DESC);
CREATE INDEX webhooks_since ON public.webhooks USING btree (id) WHERE (since_snapshot IS NOT NULL);
CREATE INDEX webhooks_standing ON public.webhooks USING btree (state, circuit);
CREATE TRIGGER deals_counted AFTER INSERT OR DELETE OR UPDATE OF stage, status, value ON public.deals FOR EACH ROW EXECUTE FUNCTION public.count_deals();
CREATE TRIGGER reviews_counted AFTER INSERT OR DELETE OR UPDATE OF status ON public.reviews FOR EACH ROW EXECUTE FUNCTION public.count_reviews();
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.category_names
    ADD CONSTRAINT category_names_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.categories(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.category_slugs
    ADD CONSTRAINT category_slugs_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.categories(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.contact_tags
    ADD CONSTRAINT contact_tags_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.contacts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.coupon_codes
    ADD CONSTRAINT coupon_codes_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.coupons(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.customer_addresses
    ADD CONSTRAINT customer_addresses_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.customer_emails
    ADD CONSTRAINT customer_emails_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.customers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.customer_identities
    ADD CONSTRAINT customer_identities_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.customer_sessions
    ADD CONSTRAINT customer_sessions_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.customer_tokens
    ADD CONSTRAINT customer_tokens_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.deal_contacts
    ADD CONSTRAINT deal_contacts_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.deals(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.lanes
    ADD CONSTRAINT lanes_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.mails
    ADD CONSTRAINT mails_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.modal_coupons
    ADD CONSTRAINT modal_coupons_id_fkey FOREIGN KEY (id) REFERENCES public.coupons(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.product_categories
    ADD CONSTRAINT product_categories_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.products(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.product_shelves
    ADD CONSTRAINT product_shelves_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.products(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.product_skus
    ADD CONSTRAINT product_skus_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.products(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.product_slugs
    ADD CONSTRAINT product_slugs_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.products(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.review_claims
    ADD CONSTRAINT review_claims_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.reviews(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.review_totals
    ADD CONSTRAINT review_totals_product_id_fkey FOREIGN KEY (product_id) REFERENCES public.products(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.store_hosts
    ADD CONSTRAINT store_hosts_record_id_fkey FOREIGN KEY (record_id) REFERENCES public.stores(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);
SELECT pg_catalog.setval('public.events_pos_seq', 5, true);
