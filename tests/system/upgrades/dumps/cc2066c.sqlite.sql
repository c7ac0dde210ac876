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
INSERT INTO "api_keys" VALUES('01a209627cc0369b79660cfd','01a209627530b6d113cf4aa0','upgrade','crt_tef9CQaf',X'E6625A40644F00385EE7936E95681A75AF159B2A704B3AC86D4D1C776FBB7ABA','["read","write"]',NULL,1795453780061690,NULL,1795453779136063);
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
INSERT INTO "attempts" VALUES('01a209627530b6d113cf4aa0','01a20962805030027d6300d8','01a209627f5579b1d0695330','01a209628046bf2ea7c8a280',1,'event','success',200,NULL,1795453780055788,NULL,2929,NULL,47,5317,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453780"],["X-Webhook-Signature","sha256=8c3776eeef705ebf4d816c14f7a2ccf127c9909de5f46a019ecc7c8f6acd885a"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209628046bf2ea7c8a280"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a209628046bf2ea7c8a280"],["webhook-timestamp","1795453780"],["webhook-signature","v1,ayrR5iaZ+Ef4X1kIUyXTKlpmyPxjjeRJrfFT+/+oO30="],["traceparent","00-8bc2c1142899ac480785a19baa44319b-ebdbb1f99b07abf4-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:09:40 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a209626d80db324c15b939');
INSERT INTO "attempts" VALUES('01a209627530b6d113cf4aa0','01a209628065cee0718c06db','01a209627f5579b1d0695330','01a20962805f04e2ec9c8f2a',1,'event','http_5xx',500,NULL,1795453780076942,NULL,NULL,NULL,62,1101,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453780"],["X-Webhook-Signature","sha256=5f661d424f411f6a86a7e75629fcc759b6d473b1f30421a661d3fde8ecd08ee0"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20962805f04e2ec9c8f2a"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20962805f04e2ec9c8f2a"],["webhook-timestamp","1795453780"],["webhook-signature","v1,+q8EV5jxivw30L2mbjS1m211m2MJhz7NZwFfw9VBjj0="],["traceparent","00-8eb752389a021d5320e3b3b055b40c23-27dbc8e2cf04ca42-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:09:40 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a209626d80db324c15b939');
INSERT INTO "attempts" VALUES('01a209627530b6d113cf4aa0','01a209628065cee0718c06db','01a209627f5579b1d0695330','01a20962805f04e2ec9c8f2a',2,'event','http_5xx',500,NULL,1795453780171844,NULL,NULL,NULL,1000,1254,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453780"],["X-Webhook-Signature","sha256=5f661d424f411f6a86a7e75629fcc759b6d473b1f30421a661d3fde8ecd08ee0"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20962805f04e2ec9c8f2a"],["X-Webhook-Attempt","2"],["X-Webhook-Record-Version","1"],["webhook-id","01a20962805f04e2ec9c8f2a"],["webhook-timestamp","1795453780"],["webhook-signature","v1,+q8EV5jxivw30L2mbjS1m211m2MJhz7NZwFfw9VBjj0="],["traceparent","00-8eb752389a021d5320e3b3b055b40c23-dcdc526c446b9c28-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:09:40 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a209626d80db324c15b939');
INSERT INTO "attempts" VALUES('01a209627530b6d113cf4aa0','01a209629ea7b6c7ec9f8d60','01a209627f5579b1d0695330','01a209629ea6f14abd787ff6',1,'event','http_5xx',500,NULL,1795453787820536,NULL,587,NULL,1584,3093,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453787"],["X-Webhook-Signature","sha256=099f18acf11fd73832305dfdb65e65045abec6fad1308194f7fbcf3601af6030"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a209629ea6f14abd787ff6"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a209629ea6f14abd787ff6"],["webhook-timestamp","1795453787"],["webhook-signature","v1,+EzziSX+CKqiOWc6kElzwWRY3wUTAdCjcJZNsoedx3Q="],["traceparent","00-34fdc2ec261f6fc79a28cf879a51bd4c-fb0059f603dd007a-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:09:47 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a209629e60db100fb783a3');
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
);
INSERT INTO "contacts" VALUES('01a2096280463b119f98b186','01a209627530b6d113cf4aa0',1,1795453780038297,NULL,'Delivered','delivered@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'delivereddelivered@example.com','delivered');
INSERT INTO "contacts" VALUES('01a20962805f24b7dc3e9a50','01a209627530b6d113cf4aa0',1,1795453780063702,NULL,'Exhausted','exhausted@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'exhaustedexhausted@example.com','exhausted');
INSERT INTO "contacts" VALUES('01a209629ea6623107808b97','01a209627530b6d113cf4aa0',1,1795453787814960,NULL,'Waiting','waiting@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'waitingwaiting@example.com','waiting');
INSERT INTO "contacts" VALUES('01a209629eb2e5eaee6795ec','01a209627530b6d113cf4aa0',1,1795453787826567,NULL,'Hanging','hanging@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'hanginghanging@example.com','hanging');
INSERT INTO "contacts" VALUES('01a209629eb82e5e87f0b244','01a209627530b6d113cf4aa0',1,1795453787832001,NULL,'Unclaimed','unclaimed@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'unclaimedunclaimed@example.com','unclaimed');
CREATE TABLE counters (
  owner_id text  not null,
  series text  not null,
  n bigint not null,
  primary key (owner_id, series)
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
INSERT INTO "deliveries" VALUES('01a20962805013cdd258695d','01a209627530b6d113cf4aa0','01a209628046bf2ea7c8a280','01a2096280173231b6ab2c78','event','ready',NULL,0,1795453780049538,0,0,NULL,NULL,'01a2096280463b119f98b186',1,1795453780048609,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20962805030027d6300d8','01a209627530b6d113cf4aa0','01a209628046bf2ea7c8a280','01a209627f5579b1d0695330','event','delivered','success',1,1795453780068344,1,1,NULL,NULL,'01a2096280463b119f98b186',1,1795453780048609,1795453780067858,'success',200,NULL,0);
INSERT INTO "deliveries" VALUES('01a20962806531c8c1beba70','01a209627530b6d113cf4aa0','01a20962805f04e2ec9c8f2a','01a2096280173231b6ab2c78','event','ready',NULL,0,1795453780069698,0,0,NULL,NULL,'01a20962805f24b7dc3e9a50',2,1795453780069467,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a209628065cee0718c06db','01a209627530b6d113cf4aa0','01a20962805f04e2ec9c8f2a','01a209627f5579b1d0695330','event','exhausted','http_5xx',1,1795453780175871,2,2,NULL,NULL,'01a20962805f24b7dc3e9a50',2,1795453780069467,1795453780175659,'http_5xx',500,NULL,0);
INSERT INTO "deliveries" VALUES('01a209629ea772bcb99045cf','01a209627530b6d113cf4aa0','01a209629ea6f14abd787ff6','01a2096280173231b6ab2c78','event','ready',NULL,0,1795453787816534,0,0,NULL,NULL,'01a209629ea6623107808b97',3,1795453787815792,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a209629ea7b6c7ec9f8d60','01a209627530b6d113cf4aa0','01a209629ea6f14abd787ff6','01a209627f5579b1d0695330','event','ready','http_5xx',1,1795453839958688,1,1,NULL,NULL,'01a209629ea6623107808b97',3,1795453787815792,NULL,'http_5xx',500,NULL,0);
INSERT INTO "deliveries" VALUES('01a209629eb402c3cbeac412','01a209627530b6d113cf4aa0','01a209629eb26d54df8d6f2a','01a209627f5579b1d0695330','event','in_flight',NULL,0,1795453787828614,0,1,'01a209629e60db100fb783a3-4','01a209629e60db100fb783a3','01a209629eb2e5eaee6795ec',4,1795453787828370,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a209629eb4d98ecbb8b3fc','01a209627530b6d113cf4aa0','01a209629eb26d54df8d6f2a','01a2096280173231b6ab2c78','event','ready',NULL,0,1795453787828614,0,0,NULL,NULL,'01a209629eb2e5eaee6795ec',4,1795453787828370,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a209629eb900a323a315db','01a209627530b6d113cf4aa0','01a209629eb8c4ec62d5b0e8','01a2096280173231b6ab2c78','event','ready',NULL,0,1795453787833429,0,0,NULL,NULL,'01a209629eb82e5e87f0b244',5,1795453787833274,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a209629eb9c49ce0875ab0','01a209627530b6d113cf4aa0','01a209629eb8c4ec62d5b0e8','01a209627f5579b1d0695330','event','ready',NULL,0,1795453787833429,0,0,NULL,NULL,'01a209629eb82e5e87f0b244',5,1795453787833274,NULL,NULL,NULL,NULL,0);
CREATE TABLE duties (
  name text  primary key,
  began_at bigint not null,
  ended_at bigint
);
INSERT INTO "duties" VALUES('quotes',1795453780294895,1795453780307610);
INSERT INTO "duties" VALUES('webhook-secrets',1795453780294975,1795453780307647);
INSERT INTO "duties" VALUES('idempotency',1795453780295004,1795453780307670);
INSERT INTO "duties" VALUES('tokens',1795453780295026,1795453780307685);
INSERT INTO "duties" VALUES('sessions',1795453780295056,1795453780307699);
INSERT INTO "duties" VALUES('first-account-links',1795453780295088,1795453780307713);
INSERT INTO "duties" VALUES('api-keys',1795453780295125,1795453780307729);
INSERT INTO "duties" VALUES('retention',1795453780299851,1795453780308624);
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
INSERT INTO "events" VALUES(1,'01a209628046bf2ea7c8a280',1,'01a209627530b6d113cf4aa0','contact.created','01a2096280463b119f98b186',1,NULL,1795453780038297,'01a209628042c28e05f748b6','00-8bc2c1142899ac480785a19baa44319b-2747cf943ff624dc-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333738302C2264617461223A7B226964223A22303161323039363238303436336231313966393862313836222C226E616D65223A2244656C697665726564222C22656D61696C223A2264656C697665726564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30393A34302E3033385A227D7D','af6ef2244c9ffd6f877a890ab28a416c2f9882dd17ed4f3abd3068e7822e9a4b',NULL);
INSERT INTO "events" VALUES(2,'01a20962805f04e2ec9c8f2a',2,'01a209627530b6d113cf4aa0','contact.created','01a20962805f24b7dc3e9a50',1,NULL,1795453780063702,'01a20962805d8e9862108e43','00-8eb752389a021d5320e3b3b055b40c23-9b59708493293abd-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333738302C2264617461223A7B226964223A22303161323039363238303566323462376463336539613530222C226E616D65223A22457868617573746564222C22656D61696C223A22657868617573746564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30393A34302E3036335A227D7D','e365805291f07cc3f3f19f41afa266059b55bfc6e765528f56ab9b4f7a9c9c01',NULL);
INSERT INTO "events" VALUES(3,'01a209629ea6f14abd787ff6',3,'01a209627530b6d113cf4aa0','contact.created','01a209629ea6623107808b97',1,NULL,1795453787814960,'01a209629ea5a5086f5744f8','00-34fdc2ec261f6fc79a28cf879a51bd4c-ad48355d6ec278bb-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333738372C2264617461223A7B226964223A22303161323039363239656136363233313037383038623937222C226E616D65223A2257616974696E67222C22656D61696C223A2277616974696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30393A34372E3831345A227D7D','334c9f20105d631de1e10be2f08f93abc1016c1c1cfa3d30f40aaa98f1c19ac0',NULL);
INSERT INTO "events" VALUES(4,'01a209629eb26d54df8d6f2a',4,'01a209627530b6d113cf4aa0','contact.created','01a209629eb2e5eaee6795ec',1,NULL,1795453787826567,'01a209629eb10c9103467e3b','00-91647ceb3a3af7435387dd5230c203c1-fa33d2255f60f752-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333738372C2264617461223A7B226964223A22303161323039363239656232653565616565363739356563222C226E616D65223A2248616E67696E67222C22656D61696C223A2268616E67696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30393A34372E3832365A227D7D','9584a2e087ad932d6d81522f83c236826f121d3264e8817fad5079d3db7b43c6',NULL);
INSERT INTO "events" VALUES(5,'01a209629eb8c4ec62d5b0e8',5,'01a209627530b6d113cf4aa0','contact.created','01a209629eb82e5e87f0b244',1,NULL,1795453787832001,'01a209629eb77308dabe71ff','00-31e366abbe18231c92e7af35a4b222d6-1e2f9e1ba02d2273-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333738372C2264617461223A7B226964223A22303161323039363239656238326535653837663062323434222C226E616D65223A22556E636C61696D6564222C22656D61696C223A22756E636C61696D6564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30393A34372E3833325A227D7D','8ad31a3c892602ec5d46eb82ba9d8812300e8ab9353be7edf2a00769808d162d',NULL);
CREATE TABLE first_account_links (
  digest bytea primary key,
  created_at bigint not null,
  expires_at bigint not null
);
INSERT INTO "first_account_links" VALUES(X'5B1754912E884C9099D1C1213D9E3F80486BB7B4AFF1F4EDC88BB83AB4E70D15',1795453775301918,1795540175301918);
CREATE TABLE idempotency (
  owner_id text  not null,
  key text  not null,
  method text  not null,
  path text  not null,
  fingerprint bytea not null,
  status bigint,
  headers text,
  body bytea,
  created_at bigint not null,
  primary key (owner_id, key, method, path)
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
INSERT INTO "lanes" VALUES('01a209627f5579b1d0695330','01a209627530b6d113cf4aa0',1,1,1795453817833663,0,1795453787833660,3);
INSERT INTO "lanes" VALUES('01a2096280173231b6ab2c78','01a209627530b6d113cf4aa0',0,0,1795453779049538,0,0,0);
CREATE TABLE nodes (
  id text  primary key,
  epoch bigint not null,
  started_at bigint not null,
  alive_until bigint not null
);
INSERT INTO "nodes" VALUES('01a209629e60db100fb783a3',1,1795453787805973,1795453817806302);
CREATE TABLE outbox_state (
  id bigint primary key check (id = 1),
  seq bigint not null,
  due_mark bigint not null
);
INSERT INTO "outbox_state" VALUES(1,5,1795453787825067);
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
CREATE TABLE product_skus (
  owner_id text  not null,
  value text  not null,
  record_id text  not null references products (id) on delete cascade,
  primary key (owner_id, value)
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
CREATE TABLE schema_migrations (
  component text not null,
  number bigint not null,
  name text not null,
  checksum text not null,
  applied_at bigint not null,
  primary key (component, number)
);
INSERT INTO "schema_migrations" VALUES('outbox',1,'0001_outbox','479a14000f7ee946a5f5833f27b90d23062191c185d9cfdd07db27e816fad7b2',1795453774929017);
INSERT INTO "schema_migrations" VALUES('outbox',2,'0002_turns','9a53cf041992be067f18b45867d72045e49b96f0b19191dbc7f578ee78f73a0e',1795453774947924);
INSERT INTO "schema_migrations" VALUES('outbox',3,'0003_duties','d5ff5d160f013fa55a2699878a06b21c83be969f2eb542f4b1a18c9ef1da849d',1795453774957257);
INSERT INTO "schema_migrations" VALUES('gateway',1,'0001_accounts','8c5efd9698b1be38a8319d08f0e5592261f93d5abc7945d62d01fcbc3b9fbae7',1795453774971809);
INSERT INTO "schema_migrations" VALUES('gateway',2,'0002_crm','a0f2469e19deab6b14ecd39a77508e19c7d7cc910487052300a3d3f6c3bfbbf8',1795453774986499);
INSERT INTO "schema_migrations" VALUES('gateway',3,'0003_console','1267420ea4e647c04667a6d3cd3a1d02076edc78ebc6b79903fedbed3210a9db',1795453774996769);
INSERT INTO "schema_migrations" VALUES('gateway',4,'0004_sales','9849a8bd6df520047d4e8d1bdbfb76579f749117c19577515935dfb56a3c40b6',1795453775000705);
INSERT INTO "schema_migrations" VALUES('gateway',5,'0005_billing','ca08f492f8ceff8578c1ea189caa99fed5531cdbd8526b2219ecf9ca6402fb9b',1795453775027903);
INSERT INTO "schema_migrations" VALUES('gateway',6,'0006_duties','a41674b7f80fe1b2fd7558ae8c8e39d92f2b10485159d3b3ea5fea558ad647b7',1795453775038172);
INSERT INTO "schema_migrations" VALUES('gateway',7,'0007_pending_ends','c7d2585e20f86e5e867b919ab9fc5898fee88413e80f28c34241a523b3e11d8f',1795453775043871);
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
INSERT INTO "sessions" VALUES('01a209627e587caa58f0dfa1','01a209627530b6d113cf4aa0',X'52769B1D2ECA6712231935B1ECA6AD72E323575B7BC9F7ACB31B7B67A08CC425','127.0.0.1','Python/3.11 aiohttp/3.14.5',1795453779544759,1795453779544759,1796663379544759,NULL);
CREATE TABLE tallies (
  owner_id text  not null,
  kind text  not null,
  slot bigint not null,
  n bigint not null,
  primary key (owner_id, kind, slot)
);
INSERT INTO "tallies" VALUES('01a209627530b6d113cf4aa0','contacts',6,1);
INSERT INTO "tallies" VALUES('01a209627530b6d113cf4aa0','contacts',0,1);
INSERT INTO "tallies" VALUES('01a209627530b6d113cf4aa0','contacts',7,1);
INSERT INTO "tallies" VALUES('01a209627530b6d113cf4aa0','contacts',12,1);
INSERT INTO "tallies" VALUES('01a209627530b6d113cf4aa0','contacts',4,1);
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
INSERT INTO "users" VALUES('01a209627530b6d113cf4aa0','ana@example.com','ana@example.com','Ana','$argon2id$v=19$m=19456,t=2,p=1$9LwsmZ3Ahut8KgarGkSoKg$9m5b4MJ8f3NdWwMG+gjz7I9HSVI8nRGq/pV4Tjj04TM','America/Sao_Paulo',NULL,1795453777200522,1795453777200522,1);
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
INSERT INTO "webhooks" VALUES('01a209627f5579b1d0695330','01a209627530b6d113cf4aa0',1,'http://127.0.0.1:47471/first','["contact.created"]',NULL,'active',NULL,0,NULL,NULL,NULL,X'505B8297BB030514E9E06BB2718A5F69E69D5B989993BEA496BA95986CA1BA87474E302840E39874011E3B85A55E3187DBA1589D7CE1325EB5712AF74D6423FEF663801AB242A030B940B09A1680A7ABF638',NULL,NULL,NULL,0,1795453779797479,1795453779797479,1795453780067858,1795453780078432,3,'http_5xx',500,1795453787823980,'closed',NULL,NULL,NULL);
INSERT INTO "webhooks" VALUES('01a2096280173231b6ab2c78','01a209627530b6d113cf4aa0',2,'http://127.0.0.1:47471/paused','["contact.created"]',NULL,'paused',NULL,0,NULL,NULL,NULL,X'505B82972DF593972E34206BF5378A325FFD059CEEEED29E7440AF803D8865328DD02AC1B47A1A384AFC29AA39EFAC393D0BD2016465DF090049D86C909A72C23BC4D00939FF2C7EB59D3FA5A8720BC59283',NULL,NULL,NULL,0,1795453779991667,1795453780018275,NULL,NULL,0,NULL,NULL,NULL,'closed',NULL,NULL,NULL);
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
CREATE INDEX idempotency_old on idempotency (created_at);
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',5);
COMMIT;
