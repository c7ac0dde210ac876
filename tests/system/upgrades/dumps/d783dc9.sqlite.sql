BEGIN TRANSACTION;
CREATE TABLE activities (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  type text  not null,
  description text not null,
  related_id text  not null,
  related_type text  not null,
  metadata text,
  created_by text  not null
);
CREATE TABLE api_keys (
  id text  primary key,
  owner_id text  not null references users (id),
  name text not null,
  visible text not null,
  digest bytea not null unique,
  scopes text not null,
  expires_at bigint,
  last_used_at bigint,
  revoked_at bigint,
  created_at bigint not null
);
INSERT INTO "api_keys" VALUES('01a209633dc2019e11ed51e8','01a20963389346c71ffc2b7a','upgrade','crt_LbwiNcXw',X'84CA5C7ECFCEB0CAB2170DC315C63408A412C7B2B561448B93209C9E11F86805','["read","write"]',NULL,1795453829242001,NULL,1795453828546899);
CREATE TABLE attempts (
  owner_id text  not null,
  delivery_id text  not null,
  webhook_id text  not null,
  event_id text  not null,
  number bigint not null,
  kind text not null check (kind in ('event', 'replay', 'test', 'probe')),
  outcome text not null,
  status bigint,
  error text,
  started_at bigint not null,
  dns_us bigint,
  connect_us bigint,
  tls_us bigint,
  first_byte_us bigint,
  total_us bigint not null,
  address text,
  url text not null,
  request_headers text not null,
  response_headers text,
  response_body bytea,
  truncated boolean not null,
  node_id text not null,
  primary key (delivery_id, number)
);
INSERT INTO "attempts" VALUES('01a20963389346c71ffc2b7a','01a20963405e78d2a86313f8','01a209633fd34a9cb2f9560e','01a20963405a5f09054fa327',1,'event','success',200,NULL,1795453829220711,NULL,5164,NULL,2036,9340,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453829"],["X-Webhook-Signature","sha256=a247ef20720dd7860179dc66f922865a1da39e42aefad3bdfc178f2c25ad23cb"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20963405a5f09054fa327"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20963405a5f09054fa327"],["webhook-timestamp","1795453829"],["webhook-signature","v1,VK+ZW0LVcDKqcMl7/3PE3aDh1KUTESw0KDdxHxve1yY="],["traceparent","00-8d5e659af8b0a0ea4897f05d733edc08-18e45f14cf5b66af-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:10:29 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a2096333a65775ad9425c9');
INSERT INTO "attempts" VALUES('01a20963389346c71ffc2b7a','01a20963407f26813090ae17','01a209633fd34a9cb2f9560e','01a20963407c40932ff0a443',1,'event','http_5xx',500,NULL,1795453829252078,NULL,NULL,NULL,1147,1709,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453829"],["X-Webhook-Signature","sha256=03588c0407151f9b005477ef4ebff9a5c4cb2977fd0d7429d615b7818153bbbd"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20963407c40932ff0a443"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20963407c40932ff0a443"],["webhook-timestamp","1795453829"],["webhook-signature","v1,JPdWJyiCXE3oXegJpWETOqpf6RbfKsGNDlMdRd0oB9E="],["traceparent","00-8a0df842b6cd327994060d90f6e5939c-95d6a821a4003836-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:10:29 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a2096333a65775ad9425c9');
INSERT INTO "attempts" VALUES('01a20963389346c71ffc2b7a','01a20963407f26813090ae17','01a209633fd34a9cb2f9560e','01a20963407c40932ff0a443',2,'event','http_5xx',500,NULL,1795453829379994,NULL,NULL,NULL,1129,1654,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453829"],["X-Webhook-Signature","sha256=03588c0407151f9b005477ef4ebff9a5c4cb2977fd0d7429d615b7818153bbbd"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20963407c40932ff0a443"],["X-Webhook-Attempt","2"],["X-Webhook-Record-Version","1"],["webhook-id","01a20963407c40932ff0a443"],["webhook-timestamp","1795453829"],["webhook-signature","v1,JPdWJyiCXE3oXegJpWETOqpf6RbfKsGNDlMdRd0oB9E="],["traceparent","00-8a0df842b6cd327994060d90f6e5939c-780c114bbbccbda0-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:10:29 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a2096333a65775ad9425c9');
INSERT INTO "attempts" VALUES('01a20963389346c71ffc2b7a','01a209635f3417afdcec30af','01a209633fd34a9cb2f9560e','01a209635f2b4a4eea0374e6',1,'event','http_5xx',500,NULL,1795453837122661,NULL,1045,NULL,43,5157,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453837"],["X-Webhook-Signature","sha256=1a496a060c29821efcc40b76be80ce228186e0d3d0c71172e2bac7ea5a17e959"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209635f2b4a4eea0374e6"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a209635f2b4a4eea0374e6"],["webhook-timestamp","1795453837"],["webhook-signature","v1,DPsuSMEjfOeP63R8CqQ4zN4ro5SV03ZOMzUGCB5tc6Q="],["traceparent","00-17b153076312276ced888dfcbf708f74-ddc8f46a3b94ec1c-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:10:37 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a209635e96c006128b778c');
CREATE TABLE carts (
  id text  primary key,
  owner_id text  not null,
  store_id text  not null,
  digest bytea,
  customer_id text ,
  state text  not null,
  lines text not null,
  coupon_id text ,
  cep text ,
  shipping_type text ,
  shipping_price bigint,
  order_id text ,
  created_at bigint not null,
  touched_at bigint not null,
  expires_at bigint,
  ended_at bigint
);
CREATE TABLE categories (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text  not null,
  name text not null,
  slug text ,
  parent_id text ,
  folded text  not null,
  sort_name text  not null
);
CREATE TABLE category_names (
  store_id text  not null,
  value text  not null,
  record_id text  not null references categories (id) on delete cascade,
  primary key (store_id, value)
);
CREATE TABLE category_slugs (
  store_id text  not null,
  value text  not null,
  record_id text  not null references categories (id) on delete cascade,
  primary key (store_id, value)
);
CREATE TABLE checkouts (
  store_id text  not null,
  visitor text  not null,
  key text  not null,
  fingerprint bytea not null,
  order_id text  not null,
  sealed bytea not null,
  created_at bigint not null,
  primary key (store_id, visitor, key)
);
CREATE TABLE companies (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  name text not null,
  cnpj text,
  cnpj_normal text ,
  website text,
  industry text,
  size text,
  email text,
  phone text,
  phone_e164 text,
  notes text,
  folded text  not null,
  sort_name text  not null
);
CREATE TABLE contact_tags (
  owner_id text  not null,
  value text  not null,
  record_id text  not null references contacts (id) on delete cascade,
  primary key (owner_id, value, record_id)
);
CREATE TABLE contacts (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  name text not null,
  email text,
  phone text,
  phone_e164 text,
  position text,
  notes text,
  company_id text ,
  tags text not null,
  source text not null,
  consent boolean,
  folded text  not null,
  sort_name text  not null
, email_folded text);
INSERT INTO "contacts" VALUES('01a20963405ab16742a1b570','01a20963389346c71ffc2b7a',1,1795453829210890,NULL,'Delivered','delivered@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'delivereddelivered@example.com','delivered','delivered@example.com');
INSERT INTO "contacts" VALUES('01a20963407c69ad03c76bdd','01a20963389346c71ffc2b7a',1,1795453829244267,NULL,'Exhausted','exhausted@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'exhaustedexhausted@example.com','exhausted','exhausted@example.com');
INSERT INTO "contacts" VALUES('01a209635f2b4038ea3ab111','01a20963389346c71ffc2b7a',1,1795453837099161,NULL,'Waiting','waiting@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'waitingwaiting@example.com','waiting','waiting@example.com');
INSERT INTO "contacts" VALUES('01a209635f4820b486b09050','01a20963389346c71ffc2b7a',1,1795453837128605,NULL,'Hanging','hanging@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'hanginghanging@example.com','hanging','hanging@example.com');
INSERT INTO "contacts" VALUES('01a209635f550cefcbefbdc5','01a20963389346c71ffc2b7a',1,1795453837141442,NULL,'Unclaimed','unclaimed@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'unclaimedunclaimed@example.com','unclaimed','unclaimed@example.com');
CREATE TABLE counters (
  owner_id text  not null,
  series text  not null,
  n bigint not null,
  primary key (owner_id, series)
);
CREATE TABLE coupon_codes (
  store_id text  not null,
  value text  not null,
  record_id text  not null references coupons (id) on delete cascade,
  primary key (store_id, value)
);
CREATE TABLE coupon_uses (
  id text  primary key,
  owner_id text  not null,
  coupon_id text  not null,
  holder bytea not null,
  customer_id text ,
  state text  not null,
  created_at bigint not null
);
CREATE TABLE coupons (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text  not null,
  code text not null,
  discount_percentage bigint,
  discount_value bigint,
  min_total bigint,
  max_uses bigint,
  per_customer bigint,
  starts_at bigint,
  ends_at bigint,
  active boolean not null,
  uses bigint not null,
  modal_id text ,
  folded text  not null
);
CREATE TABLE customer_addresses (
  id text  primary key,
  customer_id text  not null references customers (id) on delete cascade,
  created_at bigint not null,
  name text,
  street text not null,
  number text not null,
  complement text,
  district text,
  city text not null,
  state text not null,
  cep text not null
);
CREATE TABLE customer_emails (
  store_id text  not null,
  value text  not null,
  record_id text  not null references customers (id) on delete cascade,
  primary key (store_id, value)
);
CREATE TABLE customer_identities (
  store_id text  not null,
  issuer text  not null,
  subject text  not null,
  customer_id text  not null references customers (id) on delete cascade,
  created_at bigint not null,
  primary key (store_id, issuer, subject)
);
CREATE TABLE customer_sessions (
  id text  primary key,
  customer_id text  not null references customers (id) on delete cascade,
  created_at bigint not null,
  expires_at bigint not null
);
CREATE TABLE customer_tokens (
  digest bytea primary key,
  customer_id text  not null references customers (id) on delete cascade,
  kind text  not null,
  created_at bigint not null,
  expires_at bigint not null
);
CREATE TABLE customers (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text  not null,
  name text not null,
  email text,
  phone text,
  email_verified boolean not null,
  accepts_marketing boolean not null,
  contact_id text ,
  password_hash text,
  folded text  not null,
  sort_name text  not null
);
CREATE TABLE deal_contacts (
  owner_id text  not null,
  value text  not null,
  record_id text  not null references deals (id) on delete cascade,
  primary key (owner_id, value, record_id)
);
CREATE TABLE deal_totals (
  owner_id text  not null,
  stage text  not null,
  status text  not null,
  slot text  not null,
  n bigint not null,
  value bigint not null,
  primary key (owner_id, stage, status, slot)
);
CREATE TABLE deals (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  title text not null,
  value bigint not null,
  currency text not null,
  stage text ,
  status text  not null,
  probability bigint,
  company_id text ,
  contact_ids text not null,
  expected_close_at bigint,
  expected_close_day boolean,
  closed_at bigint,
  lost_reason text
);
CREATE TABLE deliveries (
  id text  primary key,
  owner_id text  not null,
  event_id text  not null,
  webhook_id text  not null,
  origin text not null check (origin in ('event', 'replay', 'test')),
  state text not null check (state in
    ('ready', 'in_flight', 'held', 'delivered', 'exhausted', 'gone', 'cancelled', 'dead')),
  reason text,
  retry boolean not null,
  next_at bigint not null,
  tries bigint not null,
  attempts bigint not null,
  claim text,
  node_id text,
  record_id text not null,
  seq bigint not null,
  created_at bigint not null,
  finished_at bigint,
  last_outcome text,
  last_status bigint,
  replayed_by text
, rescues bigint not null default 0) without rowid;
INSERT INTO "deliveries" VALUES('01a20963405e78d2a86313f8','01a20963389346c71ffc2b7a','01a20963405a5f09054fa327','01a209633fd34a9cb2f9560e','event','delivered','success',1,1795453829233881,1,1,NULL,NULL,'01a20963405ab16742a1b570',1,1795453829214668,1795453829231361,'success',200,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963405ec8582452460d','01a20963389346c71ffc2b7a','01a20963405a5f09054fa327','01a209634040043f7fd6bb96','event','ready',NULL,0,1795453829215632,0,0,NULL,NULL,'01a20963405ab16742a1b570',1,1795453829214668,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963407f00856c9e3243','01a20963389346c71ffc2b7a','01a20963407c40932ff0a443','01a209634040043f7fd6bb96','event','ready',NULL,0,1795453829248446,0,0,NULL,NULL,'01a20963407c69ad03c76bdd',2,1795453829247363,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963407f26813090ae17','01a20963389346c71ffc2b7a','01a20963407c40932ff0a443','01a209633fd34a9cb2f9560e','event','exhausted','http_5xx',1,1795453829382363,2,2,NULL,NULL,'01a20963407c69ad03c76bdd',2,1795453829247363,1795453829382190,'http_5xx',500,NULL,0);
INSERT INTO "deliveries" VALUES('01a209635f3417afdcec30af','01a20963389346c71ffc2b7a','01a209635f2b4a4eea0374e6','01a209633fd34a9cb2f9560e','event','ready','http_5xx',1,1795453897328264,1,1,NULL,NULL,'01a209635f2b4038ea3ab111',3,1795453837108985,NULL,'http_5xx',500,NULL,0);
INSERT INTO "deliveries" VALUES('01a209635f344d8a343425b7','01a20963389346c71ffc2b7a','01a209635f2b4a4eea0374e6','01a209634040043f7fd6bb96','event','ready',NULL,0,1795453837109875,0,0,NULL,NULL,'01a209635f2b4038ea3ab111',3,1795453837108985,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a209635f4aa94280039187','01a20963389346c71ffc2b7a','01a209635f489149c4df04c1','01a209634040043f7fd6bb96','event','ready',NULL,0,1795453837130185,0,0,NULL,NULL,'01a209635f4820b486b09050',4,1795453837130031,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a209635f4aafbb81b149ed','01a20963389346c71ffc2b7a','01a209635f489149c4df04c1','01a209633fd34a9cb2f9560e','event','in_flight',NULL,0,1795453837130185,0,1,'01a209635e96c006128b778c-3','01a209635e96c006128b778c','01a209635f4820b486b09050',4,1795453837130031,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a209635f622b55dc6d99a4','01a20963389346c71ffc2b7a','01a209635f5555a55a13aec7','01a209634040043f7fd6bb96','event','ready',NULL,0,1795453837155011,0,0,NULL,NULL,'01a209635f550cefcbefbdc5',5,1795453837154596,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a209635f625ad7e1981fce','01a20963389346c71ffc2b7a','01a209635f5555a55a13aec7','01a209633fd34a9cb2f9560e','event','ready',NULL,0,1795453837155011,0,0,NULL,NULL,'01a209635f550cefcbefbdc5',5,1795453837154596,NULL,NULL,NULL,NULL,0);
CREATE TABLE discount_modals (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text  not null,
  title text not null,
  prefix text not null,
  discount_percentage bigint,
  discount_value bigint,
  valid_days bigint not null,
  active boolean not null,
  folded text  not null
);
CREATE TABLE duties (
  name text  primary key,
  began_at bigint not null,
  ended_at bigint
);
CREATE TABLE ebooks (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text  not null,
  title text not null,
  file_url text not null,
  active boolean not null,
  folded text  not null,
  sort_name text  not null
);
CREATE TABLE events (
  pos integer primary key autoincrement ,
  id text  not null unique,
  seq bigint unique,
  owner_id text  not null,
  name text not null,
  record_id text not null,
  record_version bigint not null,
  webhook_id text,
  occurred_at bigint not null,
  request_id text,
  traceparent text,
  body bytea,
  body_digest text not null,
  erased_at bigint
);
INSERT INTO "events" VALUES(1,'01a20963405a5f09054fa327',1,'01a20963389346c71ffc2b7a','contact.created','01a20963405ab16742a1b570',1,NULL,1795453829210890,'01a209634059049a9b7125a7','00-8d5e659af8b0a0ea4897f05d733edc08-e5aecc4005706fb3-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333832392C2264617461223A7B226964223A22303161323039363334303561623136373432613162353730222C226E616D65223A2244656C697665726564222C22656D61696C223A2264656C697665726564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31303A32392E3231305A227D7D','245a327873f260845da14d77821027baa547a3d0f733d57d7d62012851c63b3d',NULL);
INSERT INTO "events" VALUES(2,'01a20963407c40932ff0a443',2,'01a20963389346c71ffc2b7a','contact.created','01a20963407c69ad03c76bdd',1,NULL,1795453829244267,'01a2096340799cdccc32424a','00-8a0df842b6cd327994060d90f6e5939c-770c35836e8e3d48-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333832392C2264617461223A7B226964223A22303161323039363334303763363961643033633736626464222C226E616D65223A22457868617573746564222C22656D61696C223A22657868617573746564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31303A32392E3234345A227D7D','b21a42327b7dcc0b38b575b9bdd064e8fdff888ef21ad161204c98170a551c8d',NULL);
INSERT INTO "events" VALUES(3,'01a209635f2b4a4eea0374e6',3,'01a20963389346c71ffc2b7a','contact.created','01a209635f2b4038ea3ab111',1,NULL,1795453837099161,'01a209635f2ab42a75128b76','00-17b153076312276ced888dfcbf708f74-79ceea75d5abb78e-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333833372C2264617461223A7B226964223A22303161323039363335663262343033386561336162313131222C226E616D65223A2257616974696E67222C22656D61696C223A2277616974696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31303A33372E3039395A227D7D','52642cbf271207fbf61b283504234f491cded8fdbffdeb9cdb099cb5491280a3',NULL);
INSERT INTO "events" VALUES(4,'01a209635f489149c4df04c1',4,'01a20963389346c71ffc2b7a','contact.created','01a209635f4820b486b09050',1,NULL,1795453837128605,'01a209635f48bf1e3aa42ebd','00-e053081f27188a124b9a1bd48b64465b-9c96a71187ef8a07-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333833372C2264617461223A7B226964223A22303161323039363335663438323062343836623039303530222C226E616D65223A2248616E67696E67222C22656D61696C223A2268616E67696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31303A33372E3132385A227D7D','d4f0ee4c4d57db188d9d3a01c48cea2f19a7b621a9d0839b56e6b81774c2a475',NULL);
INSERT INTO "events" VALUES(5,'01a209635f5555a55a13aec7',5,'01a20963389346c71ffc2b7a','contact.created','01a209635f550cefcbefbdc5',1,NULL,1795453837141442,'01a209635f52809a710a9ce4','00-127cd99d02f5cbc6d0c123f215b96fad-3f040b019050fa0a-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333833372C2264617461223A7B226964223A22303161323039363335663535306365666362656662646335222C226E616D65223A22556E636C61696D6564222C22656D61696C223A22756E636C61696D6564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31303A33372E3134315A227D7D','28d6b9ec87c6816b8cf23f1f7d484510937838bd0504ec4fdc840edf617a6e61',NULL);
CREATE TABLE first_account_links (
  digest bytea primary key,
  created_at bigint not null,
  expires_at bigint not null
);
INSERT INTO "first_account_links" VALUES(X'78682547D6D6C8507FEB7596E231180E5FC024EB60AD0B56F47C026881F6EF21',1795453826066852,1795540226066852);
CREATE TABLE idempotency (
  owner_id text  not null,
  key text  not null,
  operation text  not null,
  fingerprint bytea not null,
  outcome text,
  created_at bigint not null,
  primary key (owner_id, key, operation)
);
CREATE TABLE invoices (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  number text  not null,
  status text  not null,
  items text not null,
  subtotal bigint not null,
  discount bigint not null,
  shipping bigint not null,
  total bigint not null,
  currency text not null,
  due_at bigint not null,
  due_day boolean not null,
  paid_at bigint,
  method text ,
  reference text,
  canceled_at bigint,
  reason text,
  contact_id text ,
  company_id text ,
  deal_id text ,
  quote_id text ,
  order_id text ,
  notes text
);
CREATE TABLE lanes (
  webhook_id text  primary key references webhooks (id) on delete cascade,
  owner_id text  not null,
  active boolean not null,
  failing boolean not null,
  due_at bigint,
  wait_until bigint not null default 0
, turned_at bigint not null default 0, served bigint not null default 0);
INSERT INTO "lanes" VALUES('01a209633fd34a9cb2f9560e','01a20963389346c71ffc2b7a',1,1,1795453867155581,0,1795453837155572,3);
INSERT INTO "lanes" VALUES('01a209634040043f7fd6bb96','01a20963389346c71ffc2b7a',0,0,1795453828215632,0,0,0);
CREATE TABLE mails (
  id text  primary key,
  customer_id text  not null references customers (id) on delete cascade,
  kind text  not null,
  created_at bigint not null,
  attempts bigint not null,
  due_at bigint,
  failed_at bigint,
  error text
);
CREATE TABLE modal_coupons (
  id text  primary key references coupons (id) on delete cascade,
  owner_id text  not null,
  modal_id text  not null,
  holder bytea not null,
  code text not null,
  unique (modal_id, holder)
);
CREATE TABLE nodes (
  id text  primary key,
  epoch bigint not null,
  started_at bigint not null,
  alive_until bigint not null
);
INSERT INTO "nodes" VALUES('01a209635e96c006128b778c',1,1795453837082377,1795453867082669);
CREATE TABLE order_tokens (
  digest bytea primary key,
  order_id text  not null
);
CREATE TABLE orders (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  number text  not null,
  status text  not null,
  store_id text ,
  customer_id text ,
  items text not null,
  subtotal bigint not null,
  discount bigint not null,
  shipping bigint not null,
  total bigint not null,
  currency text not null,
  coupon text,
  shipping_option text,
  name text not null,
  email text not null,
  phone text,
  document text,
  address text,
  payment_method text  not null,
  notes text,
  expires_at bigint not null,
  paid_at bigint,
  canceled_at bigint,
  reason text,
  contact_id text ,
  invoice_id text ,
  deal_id text ,
  folded text  not null
);
CREATE TABLE outbox_state (
  id bigint primary key check (id = 1),
  seq bigint not null,
  due_mark bigint not null
);
INSERT INTO "outbox_state" VALUES(1,5,1795453837130005);
CREATE TABLE pending_ends (
  owner_id text  not null,
  record_id text  not null,
  noun text  not null,
  primary key (owner_id, record_id)
);
CREATE TABLE pipelines (
  owner_id text  primary key,
  stages text not null,
  strict boolean not null,
  version bigint not null
);
CREATE TABLE product_categories (
  owner_id text  not null,
  value text  not null,
  record_id text  not null references products (id) on delete cascade,
  primary key (owner_id, value, record_id)
);
CREATE TABLE product_shelves (
  record_id text  not null references products (id) on delete cascade,
  value text  not null,
  store_id text  not null,
  created_at bigint not null,
  sort_name text  not null,
  price bigint not null,
  primary key (record_id, value)
);
CREATE TABLE product_skus (
  owner_id text  not null,
  value text  not null,
  record_id text  not null references products (id) on delete cascade,
  primary key (owner_id, value)
);
CREATE TABLE product_slugs (
  store_id text  not null,
  value text  not null,
  record_id text  not null references products (id) on delete cascade,
  primary key (store_id, value)
);
CREATE TABLE products (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  name text not null,
  description text,
  sku text ,
  slug text ,
  price bigint not null,
  compare_at_price bigint,
  currency text not null,
  stock bigint,
  weight_grams bigint,
  categories text not null,
  images text not null,
  active boolean not null,
  published boolean not null,
  store_id text ,
  folded text  not null,
  sort_name text  not null
);
CREATE TABLE quotes (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  number text  not null,
  status text  not null,
  items text not null,
  subtotal bigint not null,
  discount bigint not null,
  total bigint not null,
  currency text not null,
  contact_id text ,
  company_id text ,
  deal_id text ,
  valid_until bigint,
  valid_day boolean,
  lapses_at bigint,
  sent_at bigint,
  accepted_at bigint,
  rejected_at bigint,
  invoice_id text ,
  notes text
);
CREATE TABLE review_claims (
  product_id text  not null,
  customer_id text  not null,
  record_id text  not null references reviews (id) on delete cascade,
  primary key (product_id, customer_id)
);
CREATE TABLE review_quotas (
  customer_id text  primary key,
  day bigint not null,
  n bigint not null
);
CREATE TABLE review_totals (
  product_id text  primary key references products (id) on delete cascade,
  n bigint not null,
  stars bigint not null
);
CREATE TABLE reviews (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text  not null,
  product_id text  not null,
  customer_id text ,
  author text,
  stars bigint not null,
  text text not null,
  status text  not null
);
CREATE TABLE schema_migrations (
  component text not null,
  number bigint not null,
  name text not null,
  checksum text not null,
  applied_at bigint not null,
  primary key (component, number)
);
INSERT INTO "schema_migrations" VALUES('outbox',1,'0001_outbox','479a14000f7ee946a5f5833f27b90d23062191c185d9cfdd07db27e816fad7b2',1795453825785302);
INSERT INTO "schema_migrations" VALUES('outbox',2,'0002_turns','9a53cf041992be067f18b45867d72045e49b96f0b19191dbc7f578ee78f73a0e',1795453825791890);
INSERT INTO "schema_migrations" VALUES('outbox',3,'0003_duties','d5ff5d160f013fa55a2699878a06b21c83be969f2eb542f4b1a18c9ef1da849d',1795453825794792);
INSERT INTO "schema_migrations" VALUES('gateway',1,'0001_accounts','8c5efd9698b1be38a8319d08f0e5592261f93d5abc7945d62d01fcbc3b9fbae7',1795453825805007);
INSERT INTO "schema_migrations" VALUES('gateway',2,'0002_crm','a0f2469e19deab6b14ecd39a77508e19c7d7cc910487052300a3d3f6c3bfbbf8',1795453825812206);
INSERT INTO "schema_migrations" VALUES('gateway',3,'0003_console','1267420ea4e647c04667a6d3cd3a1d02076edc78ebc6b79903fedbed3210a9db',1795453825817003);
INSERT INTO "schema_migrations" VALUES('gateway',4,'0004_sales','9849a8bd6df520047d4e8d1bdbfb76579f749117c19577515935dfb56a3c40b6',1795453825818977);
INSERT INTO "schema_migrations" VALUES('gateway',5,'0005_billing','ca08f492f8ceff8578c1ea189caa99fed5531cdbd8526b2219ecf9ca6402fb9b',1795453825831682);
INSERT INTO "schema_migrations" VALUES('gateway',6,'0006_duties','a41674b7f80fe1b2fd7558ae8c8e39d92f2b10485159d3b3ea5fea558ad647b7',1795453825843217);
INSERT INTO "schema_migrations" VALUES('gateway',7,'0007_pending_ends','c7d2585e20f86e5e867b919ab9fc5898fee88413e80f28c34241a523b3e11d8f',1795453825844377);
INSERT INTO "schema_migrations" VALUES('gateway',8,'0008_stores','35bde929300965617079709a57ee8f825bf15dd04aae99651228f74c5aab3941',1795453825845564);
INSERT INTO "schema_migrations" VALUES('gateway',9,'0009_outcomes','a1dd2667fffca60aa4f43367022b1bedf661a41dc7c520226c92d66e70bebd89',1795453825852208);
INSERT INTO "schema_migrations" VALUES('gateway',10,'0010_contact_emails','38151769be9a9b8b805e4d557f4c536e0ab030bd3cf03e14e242a37c470fa3fb',1795453825859569);
INSERT INTO "schema_migrations" VALUES('gateway',11,'0011_contact_emails_folded','639ec4107ab0341b831036f906cec4fb715a32a4a9f7eb6e84d566a38fd34735',1795453825864071);
INSERT INTO "schema_migrations" VALUES('gateway',12,'0012_ebooks','cc67e88a2ed16f693baca5ef55382d56044db1a43fc91362af56312244c06549',1795453825864896);
INSERT INTO "schema_migrations" VALUES('gateway',13,'0013_carts','01e2d32a30b3fa073d55b2772404b57767d6241c330219816cd4dc6136423ac6',1795453825866709);
INSERT INTO "schema_migrations" VALUES('gateway',14,'0014_catalogue','6a1ca8ebd65e7408c09ded4bca6e9cf76e5fe52849fc41f09a8f3c93644620f1',1795453825873209);
INSERT INTO "schema_migrations" VALUES('gateway',15,'0015_customers','4ebcde197f9a3ac3055e50f06731898b8176b32ecb313fed605c13e972f71b0e',1795453825878049);
INSERT INTO "schema_migrations" VALUES('gateway',16,'0016_orders','4ae990c71727b999b377bb074861e06c82ea328addc853e09acd55fc06414aed',1795453825888473);
INSERT INTO "schema_migrations" VALUES('gateway',17,'0017_reviews','e12da897894db70ffb2d98fed051fb3bce86aa76e2fb41c8c1803b946c4a63c3',1795453825893513);
CREATE TABLE sessions (
  id text  primary key,
  owner_id text  not null references users (id),
  digest bytea not null unique,
  address text not null,
  agent text not null,
  created_at bigint not null,
  seen_at bigint not null,
  expires_at bigint not null,
  reveal bytea
);
INSERT INTO "sessions" VALUES('01a209633f22f2c3f601504e','01a20963389346c71ffc2b7a',X'094AD0FB2EFF68D9B37CDEAE142B1FBCBD509DADB3A3BE797BE6C26BB1789EFF','127.0.0.1','Python/3.11 aiohttp/3.14.5',1795453828898223,1795453828898223,1796663428898223,NULL);
CREATE TABLE stock_reservations (
  order_id text  not null,
  product_id text  not null,
  quantity bigint not null,
  primary key (order_id, product_id)
);
CREATE TABLE store_hosts (
  value text  primary key,
  record_id text  not null references stores (id) on delete cascade
);
CREATE TABLE stores (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  hostname text  not null,
  name text not null,
  aliases text not null,
  allowed_origins text not null,
  idps text not null,
  shipping_rules text not null,
  cookie_same_site text  not null,
  deal_on_checkout boolean not null,
  review_moderation boolean not null,
  one_review_each boolean not null,
  pix_key text,
  active boolean not null,
  folded text  not null,
  sort_name text  not null
, password_reset_url text, email_verification_url text);
CREATE TABLE tallies (
  owner_id text  not null,
  kind text  not null,
  slot bigint not null,
  n bigint not null,
  primary key (owner_id, kind, slot)
);
INSERT INTO "tallies" VALUES('01a20963389346c71ffc2b7a','contacts',0,2);
INSERT INTO "tallies" VALUES('01a20963389346c71ffc2b7a','contacts',13,1);
INSERT INTO "tallies" VALUES('01a20963389346c71ffc2b7a','contacts',1,1);
INSERT INTO "tallies" VALUES('01a20963389346c71ffc2b7a','contacts',5,1);
CREATE TABLE tasks (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  title text not null,
  description text,
  due_at bigint,
  due_day boolean,
  priority text  not null,
  completed boolean not null,
  completed_at bigint,
  contact_id text ,
  deal_id text 
);
CREATE TABLE tokens (
  digest bytea primary key,
  owner_id text  not null references users (id),
  created_at bigint not null,
  expires_at bigint not null
);
CREATE TABLE used_nonces (
  store_id text  not null,
  digest bytea not null,
  expires_at bigint not null,
  primary key (store_id, digest)
);
CREATE TABLE users (
  id text  primary key,
  email text not null,
  folded_email text  not null unique,
  name text not null,
  password_hash text not null,
  timezone text not null default 'America/Sao_Paulo',
  disabled_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null default 1
);
INSERT INTO "users" VALUES('01a20963389346c71ffc2b7a','ana@example.com','ana@example.com','Ana','$argon2id$v=19$m=19456,t=2,p=1$AS6dUmpbr+CZGnrGgCH4fQ$+8xxwZgNdnHgkAbVBTU3PiSxvfSCjniZZoa8/fsMN3g','America/Sao_Paulo',NULL,1795453827219590,1795453827219590,1);
CREATE TABLE wakes (
  webhook_id text  not null
);
CREATE TABLE webhooks (
  id text  primary key,
  owner_id text  not null,
  version bigint not null,
  url text not null,
  events text not null,
  description text,
  state text not null check (state in ('active', 'paused', 'disabled')),
  disabled_reason text,
  ordered boolean not null,
  timeout_ms bigint,
  schedule text,
  headers bytea,
  secret bytea not null,
  staged_secret bytea,
  old_secret bytea,
  old_secret_until bigint,
  since_pos bigint not null,
  created_at bigint not null,
  updated_at bigint not null,
  last_success_at bigint,
  failing_since bigint,
  failures bigint not null default 0,
  last_outcome text,
  last_status bigint,
  last_attempt_at bigint,
  circuit text not null default 'closed' check (circuit in ('closed', 'open', 'half_open')),
  circuit_opened_at bigint,
  circuit_backoff bigint
, since_snapshot text);
INSERT INTO "webhooks" VALUES('01a209633fd34a9cb2f9560e','01a20963389346c71ffc2b7a',1,'http://127.0.0.1:47471/first','["contact.created"]',NULL,'active',NULL,0,NULL,NULL,NULL,X'505B8297D675EB33AD3B4385E85455845D3D800E3F0F3FA83DFF5D4808AC6D9990F11334721309FB10663662D357EBDA561C6E2FA3DFDCEBDB0906FEE5BCD89AAF3A4BB8877CF2514C4DFDCE881D4B437927',NULL,NULL,NULL,0,1795453829075837,1795453829075837,1795453829231361,1795453829254355,3,'http_5xx',500,1795453837128906,'closed',NULL,NULL,NULL);
INSERT INTO "webhooks" VALUES('01a209634040043f7fd6bb96','01a20963389346c71ffc2b7a',2,'http://127.0.0.1:47471/paused','["contact.created"]',NULL,'paused',NULL,0,NULL,NULL,NULL,X'505B8297D59642326F0B8D3A61033604207230EE2EA3A90B83BE16ABAE7DBA2EBC136D39E2EFE4B20B1C0AB28D681F9F9A9DAC7DB89BE64F34CF16E0623341CA8D4CB210C80F08A2B69F3F71C0B8E6561585',NULL,NULL,NULL,0,1795453829184368,1795453829201833,NULL,NULL,0,NULL,NULL,NULL,'closed',NULL,NULL,NULL);
CREATE INDEX events_feed on events (owner_id, seq) where webhook_id is null and seq is not null;
CREATE INDEX events_record on events (owner_id, record_id, pos);
CREATE INDEX webhooks_owner on webhooks (owner_id, created_at desc, id desc);
CREATE INDEX lanes_due on lanes (failing, due_at) where active and due_at is not null;
CREATE UNIQUE INDEX deliveries_once on deliveries (event_id, webhook_id) where origin = 'event';
CREATE INDEX deliveries_again on deliveries (event_id, webhook_id) where origin <> 'event';
CREATE INDEX deliveries_claimed on deliveries (node_id) where state = 'in_flight';
CREATE INDEX deliveries_held on deliveries (webhook_id, record_id, seq) where state = 'held';
CREATE INDEX deliveries_log on deliveries (webhook_id, id desc);
CREATE INDEX deliveries_ended on deliveries (webhook_id, state, id desc)
  where state in ('exhausted', 'gone', 'cancelled', 'dead');
CREATE INDEX deliveries_ready on deliveries (webhook_id, retry, next_at, state)
  where state = 'ready';
CREATE INDEX webhooks_old_secret on webhooks (old_secret_until) where old_secret_until is not null;
CREATE INDEX webhooks_standing on webhooks (state, circuit);
CREATE INDEX api_keys_owner on api_keys (owner_id, created_at desc, id desc);
CREATE INDEX tokens_owner on tokens (owner_id);
CREATE INDEX tokens_old on tokens (expires_at);
CREATE INDEX companies_newest on companies (owner_id, created_at desc, id desc, folded);
CREATE INDEX companies_changed on companies (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX companies_name on companies (owner_id, sort_name, id);
CREATE INDEX companies_cnpj on companies (owner_id, cnpj_normal) where cnpj_normal is not null;
CREATE INDEX contacts_newest on contacts (owner_id, created_at desc, id desc, folded);
CREATE INDEX contacts_changed on contacts (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX contacts_name on contacts (owner_id, sort_name, id);
CREATE INDEX contacts_company on contacts (owner_id, company_id) where company_id is not null;
CREATE INDEX contact_tags_record on contact_tags (record_id);
CREATE INDEX sessions_owner on sessions (owner_id, seen_at desc);
CREATE INDEX sessions_old on sessions (expires_at);
CREATE INDEX deals_newest on deals (owner_id, created_at desc, id desc);
CREATE INDEX deals_changed on deals (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX deals_status on deals (owner_id, status, created_at desc, id desc);
CREATE INDEX deals_stage on deals (owner_id, stage, created_at desc, id desc);
CREATE INDEX deals_value on deals (owner_id, value, id);
CREATE INDEX deals_close
  on deals (owner_id, (coalesce(expected_close_at, 9223372036854775807)), id);
CREATE INDEX deals_company on deals (owner_id, company_id) where company_id is not null;
CREATE INDEX deal_contacts_record on deal_contacts (record_id);
CREATE TRIGGER deals_come after insert on deals begin
  insert into deal_totals (owner_id, stage, status, slot, n, value)
  values (new.owner_id, coalesce(new.stage, ''), new.status, substr(new.id, 24), 1, new.value)
  on conflict (owner_id, stage, status, slot)
  do update set n = n + excluded.n, value = value + excluded.value;
end;
CREATE TRIGGER deals_go after delete on deals begin
  update deal_totals set n = n - 1, value = value - old.value
  where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
    and slot = substr(old.id, 24);
  delete from deal_totals
  where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
    and slot = substr(old.id, 24) and n = 0;
end;
CREATE TRIGGER deals_move after update of stage, status, value on deals begin
  insert into deal_totals (owner_id, stage, status, slot, n, value)
  values (new.owner_id, coalesce(new.stage, ''), new.status, substr(new.id, 24), 1, new.value)
  on conflict (owner_id, stage, status, slot)
  do update set n = n + excluded.n, value = value + excluded.value;
  update deal_totals set n = n - 1, value = value - old.value
  where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
    and slot = substr(old.id, 24);
  delete from deal_totals
  where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
    and slot = substr(old.id, 24) and n = 0;
end;
CREATE INDEX tasks_newest on tasks (owner_id, created_at desc, id desc);
CREATE INDEX tasks_changed on tasks (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX tasks_completed on tasks (owner_id, completed, created_at desc, id desc);
CREATE INDEX tasks_priority on tasks (owner_id, priority, created_at desc, id desc);
CREATE INDEX tasks_due on tasks (owner_id, (coalesce(due_at, 9223372036854775807)), id);
CREATE INDEX tasks_open on tasks (owner_id, due_at, id, due_day) where completed_at is null;
CREATE INDEX tasks_contact on tasks (owner_id, contact_id) where contact_id is not null;
CREATE INDEX tasks_deal on tasks (owner_id, deal_id) where deal_id is not null;
CREATE INDEX activities_newest on activities (owner_id, created_at desc, id desc);
CREATE INDEX activities_changed on activities (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX activities_related on activities (owner_id, related_id, created_at desc, id desc);
CREATE INDEX products_newest on products (owner_id, created_at desc, id desc, folded);
CREATE INDEX products_changed on products (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX products_name on products (owner_id, sort_name, id);
CREATE INDEX products_price on products (owner_id, price, id);
CREATE INDEX product_skus_record on product_skus (record_id);
CREATE INDEX product_categories_record on product_categories (record_id);
CREATE UNIQUE INDEX quotes_number on quotes (owner_id, number);
CREATE INDEX quotes_newest
  on quotes (owner_id, created_at desc, id desc, status, valid_until, valid_day);
CREATE INDEX quotes_changed on quotes (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX quotes_contact on quotes (owner_id, contact_id) where contact_id is not null;
CREATE INDEX quotes_company on quotes (owner_id, company_id) where company_id is not null;
CREATE INDEX quotes_deal on quotes (owner_id, deal_id) where deal_id is not null;
CREATE INDEX quotes_lapsing on quotes (lapses_at) where status = 'sent' and lapses_at is not null;
CREATE UNIQUE INDEX invoices_number on invoices (owner_id, number);
CREATE INDEX invoices_newest
  on invoices (owner_id, created_at desc, id desc, status, due_at, due_day, total);
CREATE INDEX invoices_changed on invoices (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX invoices_due on invoices (owner_id, due_at, id);
CREATE INDEX invoices_owed on invoices (owner_id, due_at, due_day, total) where status = 'pending';
CREATE INDEX invoices_paid on invoices (owner_id, paid_at, total) where paid_at is not null;
CREATE INDEX invoices_contact on invoices (owner_id, contact_id) where contact_id is not null;
CREATE INDEX invoices_company on invoices (owner_id, company_id) where company_id is not null;
CREATE INDEX invoices_deal on invoices (owner_id, deal_id) where deal_id is not null;
CREATE INDEX invoices_quote on invoices (owner_id, quote_id) where quote_id is not null;
CREATE INDEX deals_closed on deals (owner_id, closed_at, status, value) where closed_at is not null;
CREATE INDEX api_keys_ended on api_keys ((coalesce(revoked_at, expires_at)))
  where expires_at is not null or revoked_at is not null;
CREATE INDEX stores_newest on stores (owner_id, created_at desc, id desc, folded);
CREATE INDEX stores_changed on stores (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX stores_name on stores (owner_id, sort_name, id);
CREATE INDEX store_hosts_record on store_hosts (record_id);
CREATE INDEX idempotency_old on idempotency (created_at);
CREATE INDEX contacts_email on contacts (owner_id, email_folded, created_at, id)
  where email_folded is not null;
CREATE INDEX contacts_unfolded on contacts (id) where email is not null and email_folded is null;
CREATE INDEX ebooks_newest on ebooks (owner_id, created_at desc, id desc, folded);
CREATE INDEX ebooks_changed on ebooks (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX ebooks_title on ebooks (owner_id, sort_name, id);
CREATE INDEX ebooks_store on ebooks (owner_id, store_id);
CREATE UNIQUE INDEX carts_visitor on carts (store_id, digest) where digest is not null;
CREATE UNIQUE INDEX carts_customer on carts (store_id, customer_id)
  where customer_id is not null and state = 'active';
CREATE INDEX carts_of_customer on carts (store_id, customer_id) where customer_id is not null;
CREATE INDEX carts_of_store on carts (owner_id, store_id);
CREATE INDEX carts_expiring on carts (expires_at) where expires_at is not null;
CREATE INDEX carts_ended on carts (ended_at) where ended_at is not null;
CREATE INDEX coupons_newest on coupons (owner_id, created_at desc, id desc, folded);
CREATE INDEX coupons_changed on coupons (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX coupons_store on coupons (owner_id, store_id, created_at desc, id desc);
CREATE INDEX coupons_modal on coupons (owner_id, modal_id, created_at desc, id desc)
  where modal_id is not null;
CREATE INDEX coupons_unused on coupons (ends_at) where modal_id is not null and uses = 0;
CREATE INDEX coupon_codes_record on coupon_codes (record_id);
CREATE INDEX coupon_uses_coupon on coupon_uses (owner_id, coupon_id);
CREATE INDEX coupon_uses_holder on coupon_uses (coupon_id, holder);
CREATE INDEX coupon_uses_customer on coupon_uses (coupon_id, customer_id)
  where customer_id is not null;
CREATE INDEX discount_modals_newest on discount_modals (owner_id, created_at desc, id desc, folded);
CREATE INDEX discount_modals_changed
  on discount_modals (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX discount_modals_store on discount_modals (owner_id, store_id, created_at desc, id desc);
CREATE INDEX modal_coupons_modal on modal_coupons (owner_id, modal_id);
CREATE INDEX products_store on products (owner_id, store_id) where store_id is not null;
CREATE INDEX product_slugs_record on product_slugs (record_id);
CREATE INDEX product_shelves_newest
  on product_shelves (store_id, value, created_at desc, record_id desc);
CREATE INDEX product_shelves_name on product_shelves (store_id, value, sort_name, record_id);
CREATE INDEX product_shelves_price on product_shelves (store_id, value, price, record_id);
CREATE INDEX categories_newest on categories (owner_id, created_at desc, id desc, folded);
CREATE INDEX categories_changed on categories (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX categories_name on categories (owner_id, sort_name, id);
CREATE INDEX categories_store on categories (owner_id, store_id, sort_name, id);
CREATE INDEX categories_parent on categories (owner_id, parent_id) where parent_id is not null;
CREATE INDEX category_names_record on category_names (record_id);
CREATE INDEX category_slugs_record on category_slugs (record_id);
CREATE INDEX customers_newest on customers (owner_id, created_at desc, id desc, folded);
CREATE INDEX customers_changed on customers (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX customers_name on customers (owner_id, sort_name, id);
CREATE INDEX customers_store on customers (owner_id, store_id, created_at desc, id desc);
CREATE INDEX customers_contact on customers (owner_id, contact_id) where contact_id is not null;
CREATE INDEX customer_emails_record on customer_emails (record_id);
CREATE INDEX customer_sessions_customer on customer_sessions (customer_id, created_at, id);
CREATE INDEX customer_sessions_expiring on customer_sessions (expires_at);
CREATE INDEX customer_addresses_customer on customer_addresses (customer_id, created_at, id);
CREATE INDEX customer_identities_customer on customer_identities (customer_id);
CREATE INDEX used_nonces_expiring on used_nonces (expires_at);
CREATE INDEX customer_tokens_customer on customer_tokens (customer_id, kind);
CREATE INDEX customer_tokens_expiring on customer_tokens (expires_at);
CREATE INDEX mails_due on mails (due_at) where due_at is not null;
CREATE INDEX mails_failed on mails (failed_at) where failed_at is not null;
CREATE INDEX mails_customer on mails (customer_id);
CREATE UNIQUE INDEX orders_number on orders (owner_id, number);
CREATE INDEX orders_newest on orders (owner_id, created_at desc, id desc, status);
CREATE INDEX orders_changed on orders (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX orders_expiry on orders (owner_id, expires_at, id);
CREATE INDEX orders_store on orders (owner_id, store_id, created_at desc, id desc);
CREATE INDEX orders_customer on orders (owner_id, customer_id, created_at desc, id desc)
  where customer_id is not null;
CREATE INDEX orders_contact on orders (owner_id, contact_id) where contact_id is not null;
CREATE INDEX orders_deal on orders (owner_id, deal_id) where deal_id is not null;
CREATE INDEX orders_expiring on orders (expires_at) where status = 'pending';
CREATE INDEX invoices_order on invoices (owner_id, order_id) where order_id is not null;
CREATE INDEX order_tokens_order on order_tokens (order_id);
CREATE INDEX checkouts_created on checkouts (created_at);
CREATE INDEX reviews_newest on reviews (owner_id, created_at desc, id desc);
CREATE INDEX reviews_changed on reviews (owner_id, (coalesce(updated_at, created_at)), id);
CREATE INDEX reviews_status on reviews (owner_id, status, created_at desc, id desc);
CREATE INDEX reviews_store on reviews (owner_id, store_id, created_at desc, id desc);
CREATE INDEX reviews_product on reviews (owner_id, product_id, created_at desc, id desc);
CREATE INDEX reviews_published on reviews (product_id, created_at desc, id desc)
  where status = 'published';
CREATE INDEX reviews_customer on reviews (customer_id, product_id) where customer_id is not null;
CREATE INDEX review_claims_record on review_claims (record_id);
CREATE INDEX review_quotas_day on review_quotas (day);
CREATE TRIGGER reviews_come after insert on reviews when new.status = 'published' begin
  insert into review_totals (product_id, n, stars) values (new.product_id, 1, new.stars)
  on conflict (product_id) do update set n = n + 1, stars = stars + excluded.stars;
end;
CREATE TRIGGER reviews_go after delete on reviews when old.status = 'published' begin
  update review_totals set n = n - 1, stars = stars - old.stars where product_id = old.product_id;
end;
CREATE TRIGGER reviews_appear after update of status on reviews
when new.status = 'published' and old.status <> 'published' begin
  insert into review_totals (product_id, n, stars) values (new.product_id, 1, new.stars)
  on conflict (product_id) do update set n = n + 1, stars = stars + excluded.stars;
end;
CREATE TRIGGER reviews_vanish after update of status on reviews
when old.status = 'published' and new.status <> 'published' begin
  update review_totals set n = n - 1, stars = stars - old.stars where product_id = old.product_id;
end;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',5);
COMMIT;
