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
INSERT INTO "api_keys" VALUES('01a20961a672d482b36d60f2','01a209619189d59b0afdff8b','upgrade','crt_m5v58QYz',X'D9EA1D5E3C075A5961020203FE7DF065BFA268FA2F752D610E7C2758D9E586F9','["read","write"]',NULL,1795453725165197,NULL,1795453724274459);
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
INSERT INTO "attempts" VALUES('01a209619189d59b0afdff8b','01a20961a9e37f84d7b89980','01a20961a9677d5446770f14','01a20961a9e0a42c5680915f',1,'event','success',200,NULL,1795453725160341,NULL,1942,NULL,38,4272,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453725"],["X-Webhook-Signature","sha256=a0f75065f6ebb7bbb4df396e63c3e25bc5291b29ad2a1b5e9bf293e5e09589b7"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20961a9e0a42c5680915f"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20961a9e0a42c5680915f"],["webhook-timestamp","1795453725"],["webhook-signature","v1,wB5UeGG34RbzlDlCo3s0iuCr4RG7HPE9ZkvMeCvoBcs="],["traceparent","00-b5040034789a2464af647f954914d5be-575a0f94221d3eca-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:08:45 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a209617b80f568e0530bc5');
INSERT INTO "attempts" VALUES('01a209619189d59b0afdff8b','01a20961a9f2d6f2af66326f','01a20961a9677d5446770f14','01a20961a9efb8ff830b2774',1,'event','http_5xx',500,NULL,1795453725172944,NULL,NULL,NULL,1478,1754,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453725"],["X-Webhook-Signature","sha256=a43bdf6cbbcb95db40aa21f1367503af22def03b08a8ecfa6d4945454ee684f8"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20961a9efb8ff830b2774"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20961a9efb8ff830b2774"],["webhook-timestamp","1795453725"],["webhook-signature","v1,Dc0kVntI9B9hTqrAeIhcetGHmX4jqTQaduoiYo3J8RI="],["traceparent","00-97e6a41089833a4affe9aee95e043f1f-57fd8ff30b3717d8-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:08:45 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a209617b80f568e0530bc5');
INSERT INTO "attempts" VALUES('01a209619189d59b0afdff8b','01a20961a9f2d6f2af66326f','01a20961a9677d5446770f14','01a20961a9efb8ff830b2774',2,'event','http_5xx',500,NULL,1795453725290603,NULL,NULL,NULL,786,1093,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453725"],["X-Webhook-Signature","sha256=a43bdf6cbbcb95db40aa21f1367503af22def03b08a8ecfa6d4945454ee684f8"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20961a9efb8ff830b2774"],["X-Webhook-Attempt","2"],["X-Webhook-Record-Version","1"],["webhook-id","01a20961a9efb8ff830b2774"],["webhook-timestamp","1795453725"],["webhook-signature","v1,Dc0kVntI9B9hTqrAeIhcetGHmX4jqTQaduoiYo3J8RI="],["traceparent","00-97e6a41089833a4affe9aee95e043f1f-cc75da7ac88ac47c-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:08:45 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a209617b80f568e0530bc5');
INSERT INTO "attempts" VALUES('01a209619189d59b0afdff8b','01a20961c315d77939be00b8','01a20961a9677d5446770f14','01a20961c3130c1d6073050d',1,'event','http_5xx',500,NULL,1795453731610418,NULL,1308,NULL,30,3088,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453731"],["X-Webhook-Signature","sha256=7abd765895ba7f35199990ab0f1db09921c7487d11d4615134d229a9b454b9c2"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20961c3130c1d6073050d"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20961c3130c1d6073050d"],["webhook-timestamp","1795453731"],["webhook-signature","v1,ciB+RITawdDEcDHGpwmSp27g5nChZJUIoaCe5/vU+qA="],["traceparent","00-ce15c38b5e5ec7719970f3b4840dbbd5-bd2132d840b8fbdb-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:08:51 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a20961c2f2a4ca9b257e1d');
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
INSERT INTO "contacts" VALUES('01a20961a9e08c0064c72e09','01a209619189d59b0afdff8b',1,1795453725152459,NULL,'Delivered','delivered@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'delivereddelivered@example.com','delivered');
INSERT INTO "contacts" VALUES('01a20961a9efb69ee0039741','01a209619189d59b0afdff8b',1,1795453725167790,NULL,'Exhausted','exhausted@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'exhaustedexhausted@example.com','exhausted');
INSERT INTO "contacts" VALUES('01a20961c313526eee535417','01a209619189d59b0afdff8b',1,1795453731603385,NULL,'Waiting','waiting@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'waitingwaiting@example.com','waiting');
INSERT INTO "contacts" VALUES('01a20961c31f247a204fd7d9','01a209619189d59b0afdff8b',1,1795453731615619,NULL,'Hanging','hanging@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'hanginghanging@example.com','hanging');
INSERT INTO "contacts" VALUES('01a20961c32708c66481f6b0','01a209619189d59b0afdff8b',1,1795453731623998,NULL,'Unclaimed','unclaimed@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'unclaimedunclaimed@example.com','unclaimed');
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
INSERT INTO "deliveries" VALUES('01a20961a9e33e25a5ee2239','01a209619189d59b0afdff8b','01a20961a9e0a42c5680915f','01a20961a9bd2fac8951a6e1','event','ready',NULL,0,1795453725157586,0,0,NULL,NULL,'01a20961a9e08c0064c72e09',1,1795453725155258,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20961a9e37f84d7b89980','01a209619189d59b0afdff8b','01a20961a9e0a42c5680915f','01a20961a9677d5446770f14','event','delivered','success',1,1795453725168770,1,1,NULL,NULL,'01a20961a9e08c0064c72e09',1,1795453725155258,1795453725168249,'success',200,NULL,0);
INSERT INTO "deliveries" VALUES('01a20961a9f2d6f2af66326f','01a209619189d59b0afdff8b','01a20961a9efb8ff830b2774','01a20961a9677d5446770f14','event','exhausted','http_5xx',1,1795453725292217,2,2,NULL,NULL,'01a20961a9efb69ee0039741',2,1795453725170150,1795453725292102,'http_5xx',500,NULL,0);
INSERT INTO "deliveries" VALUES('01a20961a9f2d9033c90237f','01a209619189d59b0afdff8b','01a20961a9efb8ff830b2774','01a20961a9bd2fac8951a6e1','event','ready',NULL,0,1795453725170437,0,0,NULL,NULL,'01a20961a9efb69ee0039741',2,1795453725170150,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20961c3158382b75338b1','01a209619189d59b0afdff8b','01a20961c3130c1d6073050d','01a20961a9bd2fac8951a6e1','event','ready',NULL,0,1795453731606521,0,0,NULL,NULL,'01a20961c313526eee535417',3,1795453731605708,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20961c315d77939be00b8','01a209619189d59b0afdff8b','01a20961c3130c1d6073050d','01a20961a9677d5446770f14','event','ready','http_5xx',1,1795453790906870,1,1,NULL,NULL,'01a20961c313526eee535417',3,1795453731605708,NULL,'http_5xx',500,NULL,0);
INSERT INTO "deliveries" VALUES('01a20961c321360f06016a24','01a209619189d59b0afdff8b','01a20961c31f2e58614056fe','01a20961a9677d5446770f14','event','in_flight',NULL,0,1795453731617668,0,1,'01a20961c2f2a4ca9b257e1d-3','01a20961c2f2a4ca9b257e1d','01a20961c31f247a204fd7d9',4,1795453731617366,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20961c3215e74942dbbc3','01a209619189d59b0afdff8b','01a20961c31f2e58614056fe','01a20961a9bd2fac8951a6e1','event','ready',NULL,0,1795453731617668,0,0,NULL,NULL,'01a20961c31f247a204fd7d9',4,1795453731617366,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20961c32a53de29ee3435','01a209619189d59b0afdff8b','01a20961c327e219bc29978a','01a20961a9677d5446770f14','event','ready',NULL,0,1795453731627083,0,0,NULL,NULL,'01a20961c32708c66481f6b0',5,1795453731626850,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20961c32aa46df181da4b','01a209619189d59b0afdff8b','01a20961c327e219bc29978a','01a20961a9bd2fac8951a6e1','event','ready',NULL,0,1795453731627083,0,0,NULL,NULL,'01a20961c32708c66481f6b0',5,1795453731626850,NULL,NULL,NULL,NULL,0);
CREATE TABLE duties (
  name text  primary key,
  began_at bigint not null,
  ended_at bigint
);
INSERT INTO "duties" VALUES('quotes',1795453718326262,1795453718340927);
INSERT INTO "duties" VALUES('webhook-secrets',1795453718326328,1795453718340959);
INSERT INTO "duties" VALUES('idempotency',1795453718326351,1795453718340970);
INSERT INTO "duties" VALUES('tokens',1795453718326368,1795453718340979);
INSERT INTO "duties" VALUES('sessions',1795453718326384,1795453718340987);
INSERT INTO "duties" VALUES('first-account-links',1795453718326399,1795453718340993);
INSERT INTO "duties" VALUES('api-keys',1795453718326413,1795453718341000);
INSERT INTO "duties" VALUES('retention',1795453718326427,1795453718341908);
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
INSERT INTO "events" VALUES(1,'01a20961a9e0a42c5680915f',1,'01a209619189d59b0afdff8b','contact.created','01a20961a9e08c0064c72e09',1,NULL,1795453725152459,'01a20961a9dfdfaba127c5c4','00-b5040034789a2464af647f954914d5be-058d52f6ea27c171-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333732352C2264617461223A7B226964223A22303161323039363161396530386330303634633732653039222C226E616D65223A2244656C697665726564222C22656D61696C223A2264656C697665726564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30383A34352E3135325A227D7D','e531840b011c02f6d9b4cf4a7993c61ce844c3979867f504e1de01cf1bf14a20',NULL);
INSERT INTO "events" VALUES(2,'01a20961a9efb8ff830b2774',2,'01a209619189d59b0afdff8b','contact.created','01a20961a9efb69ee0039741',1,NULL,1795453725167790,'01a20961a9ed15ba7200e42e','00-97e6a41089833a4affe9aee95e043f1f-2e44bc35648ff6cf-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333732352C2264617461223A7B226964223A22303161323039363161396566623639656530303339373431222C226E616D65223A22457868617573746564222C22656D61696C223A22657868617573746564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30383A34352E3136375A227D7D','d1c0ad578ca837e1b9eed70724690bc0c604ab42a80caedab57e5e50c3d131b2',NULL);
INSERT INTO "events" VALUES(3,'01a20961c3130c1d6073050d',3,'01a209619189d59b0afdff8b','contact.created','01a20961c313526eee535417',1,NULL,1795453731603385,'01a20961c30feeed58679588','00-ce15c38b5e5ec7719970f3b4840dbbd5-8504adbd574e78e1-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333733312C2264617461223A7B226964223A22303161323039363163333133353236656565353335343137222C226E616D65223A2257616974696E67222C22656D61696C223A2277616974696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30383A35312E3630335A227D7D','8e3b2832bd6713b0790be6fd9f312a967c4c887147f0d42081c306b660eccd9d',NULL);
INSERT INTO "events" VALUES(4,'01a20961c31f2e58614056fe',4,'01a209619189d59b0afdff8b','contact.created','01a20961c31f247a204fd7d9',1,NULL,1795453731615619,'01a20961c31d347e8ef4658e','00-6cb582c51bc47040d1cb829a26528380-801321a4b784e85c-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333733312C2264617461223A7B226964223A22303161323039363163333166323437613230346664376439222C226E616D65223A2248616E67696E67222C22656D61696C223A2268616E67696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30383A35312E3631355A227D7D','fd9235ff403a181ca7eee24963ed2241570eb991b95e9537b58fd7f131deeeaa',NULL);
INSERT INTO "events" VALUES(5,'01a20961c327e219bc29978a',5,'01a209619189d59b0afdff8b','contact.created','01a20961c32708c66481f6b0',1,NULL,1795453731623998,'01a20961c32641b42ec205d8','00-7fea5cd79829475b8992ff1a8de8ff72-75ded35fe14f48f6-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333733312C2264617461223A7B226964223A22303161323039363163333237303863363634383166366230222C226E616D65223A22556E636C61696D6564222C22656D61696C223A22756E636C61696D6564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30383A35312E3632335A227D7D','22991a32cba7b48ec914ad065444f268a76f20ce46730de196205bbb1e6abd85',NULL);
CREATE TABLE first_account_links (
  digest bytea primary key,
  created_at bigint not null,
  expires_at bigint not null
);
INSERT INTO "first_account_links" VALUES(X'E76BAC0AEE85B8C4F7354C4955477985545785E7452FD993DC98F0AA7FBA999C',1795453713340964,1795540113340964);
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
INSERT INTO "lanes" VALUES('01a20961a9677d5446770f14','01a209619189d59b0afdff8b',1,1,1795453761627423,0,1795453731627419,3);
INSERT INTO "lanes" VALUES('01a20961a9bd2fac8951a6e1','01a209619189d59b0afdff8b',0,0,1795453724157586,0,0,0);
CREATE TABLE nodes (
  id text  primary key,
  epoch bigint not null,
  started_at bigint not null,
  alive_until bigint not null
);
INSERT INTO "nodes" VALUES('01a20961c2f2a4ca9b257e1d',1,1795453731592228,1795453761592487);
CREATE TABLE outbox_state (
  id bigint primary key check (id = 1),
  seq bigint not null,
  due_mark bigint not null
);
INSERT INTO "outbox_state" VALUES(1,5,1795453731617334);
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
INSERT INTO "schema_migrations" VALUES('outbox',1,'0001_outbox','479a14000f7ee946a5f5833f27b90d23062191c185d9cfdd07db27e816fad7b2',1795453712730120);
INSERT INTO "schema_migrations" VALUES('outbox',2,'0002_turns','9a53cf041992be067f18b45867d72045e49b96f0b19191dbc7f578ee78f73a0e',1795453712768145);
INSERT INTO "schema_migrations" VALUES('outbox',3,'0003_duties','d5ff5d160f013fa55a2699878a06b21c83be969f2eb542f4b1a18c9ef1da849d',1795453712788058);
INSERT INTO "schema_migrations" VALUES('gateway',1,'0001_accounts','8c5efd9698b1be38a8319d08f0e5592261f93d5abc7945d62d01fcbc3b9fbae7',1795453712809263);
INSERT INTO "schema_migrations" VALUES('gateway',2,'0002_crm','a0f2469e19deab6b14ecd39a77508e19c7d7cc910487052300a3d3f6c3bfbbf8',1795453712820374);
INSERT INTO "schema_migrations" VALUES('gateway',3,'0003_console','1267420ea4e647c04667a6d3cd3a1d02076edc78ebc6b79903fedbed3210a9db',1795453712851903);
INSERT INTO "schema_migrations" VALUES('gateway',4,'0004_sales','9849a8bd6df520047d4e8d1bdbfb76579f749117c19577515935dfb56a3c40b6',1795453712859986);
INSERT INTO "schema_migrations" VALUES('gateway',5,'0005_billing','b63781b7deb470318e895d78c2a41f4cc1352653a3c7f85d379ab49c258b6a82',1795453712869738);
INSERT INTO "schema_migrations" VALUES('gateway',6,'0006_duties','a41674b7f80fe1b2fd7558ae8c8e39d92f2b10485159d3b3ea5fea558ad647b7',1795453712892183);
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
INSERT INTO "sessions" VALUES('01a20961a8f6e6dd11355df4','01a209619189d59b0afdff8b',X'27F5D3A3036C501300883BA0483EFD53FBE557FE2FFA34BF00C97FDEC41EE5B4','127.0.0.1','Python/3.11 aiohttp/3.14.5',1795453724918250,1795453724918250,1796663324918250,NULL);
CREATE TABLE tallies (
  owner_id text  not null,
  kind text  not null,
  slot bigint not null,
  n bigint not null,
  primary key (owner_id, kind, slot)
);
INSERT INTO "tallies" VALUES('01a209619189d59b0afdff8b','contacts',9,2);
INSERT INTO "tallies" VALUES('01a209619189d59b0afdff8b','contacts',1,1);
INSERT INTO "tallies" VALUES('01a209619189d59b0afdff8b','contacts',7,1);
INSERT INTO "tallies" VALUES('01a209619189d59b0afdff8b','contacts',0,1);
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
INSERT INTO "users" VALUES('01a209619189d59b0afdff8b','ana@example.com','ana@example.com','Ana','$argon2id$v=19$m=19456,t=2,p=1$OOpVj0jjIuhoawXwSnpuUg$rH2zRfxNVk96naNVkcCUBBxvgQ1vVOxK6Cv8RlkLZD4','America/Sao_Paulo',NULL,1795453718921591,1795453718921591,1);
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
INSERT INTO "webhooks" VALUES('01a20961a9677d5446770f14','01a209619189d59b0afdff8b',1,'http://127.0.0.1:47471/first','["contact.created"]',NULL,'active',NULL,0,NULL,NULL,NULL,X'505B82979E3611840474FF0231DDA2855BDF8B1F56D8B3CEBBE72484C3F79DC6507D1CB427F4D45A617CE3770DB8ADACB6F2126CFBF158BA79F46EB908D57D4261B713A4983F301D7AB14BB806C9B97CBB38',NULL,NULL,NULL,0,1795453725031753,1795453725031753,1795453725168249,1795453725175153,3,'http_5xx',500,1795453731615949,'closed',NULL,NULL,NULL);
INSERT INTO "webhooks" VALUES('01a20961a9bd2fac8951a6e1','01a209619189d59b0afdff8b',2,'http://127.0.0.1:47471/paused','["contact.created"]',NULL,'paused',NULL,0,NULL,NULL,NULL,X'505B829793BE646D1AF1699790C2E690B5505A85887023A9BA5DE3215EE386AD5DF5F0FB0D73708DF0413D338A76354C6EF04C9F2261D6CF604964C727FA35681CE83A46BA42E1DE78770E32E1C49FC98D7A',NULL,NULL,NULL,0,1795453725117904,1795453725141174,NULL,NULL,0,NULL,NULL,NULL,'closed',NULL,NULL,NULL);
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
