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
INSERT INTO "api_keys" VALUES('01a20960d72f1c9ccf78f0af','01a20960ca2bc3731dcb2d3d','upgrade','crt_h6gFdKzW',X'80801C467A72F292B1FAC9AE52FEC607D3892B77373521FFE601E7802F41D83E','["read","write"]',NULL,1795453671832765,NULL,1795453671215608);
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
INSERT INTO "attempts" VALUES('01a20960ca2bc3731dcb2d3d','01a20960d9926bff2d0f26e9','01a20960d956963510ee53f5','01a20960d990f9e064ababdd',1,'event','success',200,NULL,1795453671828802,NULL,1385,NULL,1293,3434,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453671"],["X-Webhook-Signature","sha256=313089554c1d2daa9ca5a53343a8c8471155e9726052f934c589121af91bfcd0"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20960d990f9e064ababdd"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20960d990f9e064ababdd"],["webhook-timestamp","1795453671"],["webhook-signature","v1,HvCeibC8I6vpZBmqMV6aRKgrTjLBylbwSyh4xeikNs8="],["traceparent","00-84dbd29cb5ada99c45d4971f4d5a6f36-a20763580b989fa7-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:07:51 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a20960ba1b6ca2fb1fdaf4');
INSERT INTO "attempts" VALUES('01a20960ca2bc3731dcb2d3d','01a20960d99af808bb04ba5e','01a20960d956963510ee53f5','01a20960d998205040ff21cb',1,'event','http_5xx',500,NULL,1795453671838713,NULL,NULL,NULL,1262,1487,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453671"],["X-Webhook-Signature","sha256=a79b83916ad4c3c32a54b742b58c8d33fecf757884cc6980d39d6b55a6952440"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20960d998205040ff21cb"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20960d998205040ff21cb"],["webhook-timestamp","1795453671"],["webhook-signature","v1,+SpVQgNpGrVJDNUoOBrGqTMLZIIbA95ufOaHb1APz30="],["traceparent","00-07101d50705b681bafaf990a27035c2c-26dee9ffda787661-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:07:51 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a20960ba1b6ca2fb1fdaf4');
INSERT INTO "attempts" VALUES('01a20960ca2bc3731dcb2d3d','01a20960d99af808bb04ba5e','01a20960d956963510ee53f5','01a20960d998205040ff21cb',2,'event','http_5xx',500,NULL,1795453671952396,NULL,NULL,NULL,863,1229,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453671"],["X-Webhook-Signature","sha256=a79b83916ad4c3c32a54b742b58c8d33fecf757884cc6980d39d6b55a6952440"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20960d998205040ff21cb"],["X-Webhook-Attempt","2"],["X-Webhook-Record-Version","1"],["webhook-id","01a20960d998205040ff21cb"],["webhook-timestamp","1795453671"],["webhook-signature","v1,+SpVQgNpGrVJDNUoOBrGqTMLZIIbA95ufOaHb1APz30="],["traceparent","00-07101d50705b681bafaf990a27035c2c-e32e11b2fcb56ec8-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:07:51 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a20960ba1b6ca2fb1fdaf4');
INSERT INTO "attempts" VALUES('01a20960ca2bc3731dcb2d3d','01a20960ec306f3a3ae711b2','01a20960d956963510ee53f5','01a20960ec2c6cbd05fb8e92',1,'event','http_5xx',500,NULL,1795453676628456,NULL,586,NULL,1348,13531,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453676"],["X-Webhook-Signature","sha256=718e6a75e42d1caea52d5f7eb52d8593458ff432e2284b3d5734fd75bfb676d9"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20960ec2c6cbd05fb8e92"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20960ec2c6cbd05fb8e92"],["webhook-timestamp","1795453676"],["webhook-signature","v1,2DX+ImGJcsvx5ZXUZBxN28mdE8gFAMYEc/fXHS2nqEk="],["traceparent","00-3c8397e750003b81d05d75a802296d96-9b11b73bda5b9a00-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:07:56 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a20960eba17874dfbf3a8c');
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
INSERT INTO "contacts" VALUES('01a20960d990300f5469fe9d','01a20960ca2bc3731dcb2d3d',1,1795453671824622,NULL,'Delivered','delivered@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'delivereddelivered@example.com','delivered');
INSERT INTO "contacts" VALUES('01a20960d9989b5e1c2e102b','01a20960ca2bc3731dcb2d3d',1,1795453671832941,NULL,'Exhausted','exhausted@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'exhaustedexhausted@example.com','exhausted');
INSERT INTO "contacts" VALUES('01a20960ec2cfe19d37b4dac','01a20960ca2bc3731dcb2d3d',1,1795453676588012,NULL,'Waiting','waiting@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'waitingwaiting@example.com','waiting');
INSERT INTO "contacts" VALUES('01a20960ec6333f92d0bf5da','01a20960ca2bc3731dcb2d3d',1,1795453676643376,NULL,'Hanging','hanging@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'hanginghanging@example.com','hanging');
INSERT INTO "contacts" VALUES('01a20960ec8c7e726d50edf9','01a20960ca2bc3731dcb2d3d',1,1795453676684836,NULL,'Unclaimed','unclaimed@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'unclaimedunclaimed@example.com','unclaimed');
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
) without rowid;
INSERT INTO "deliveries" VALUES('01a20960d9926bff2d0f26e9','01a20960ca2bc3731dcb2d3d','01a20960d990f9e064ababdd','01a20960d956963510ee53f5','event','delivered','success',1,1795453671833485,1,1,NULL,NULL,'01a20960d990300f5469fe9d',1,1795453671826440,1795453671833182,'success',200,NULL);
INSERT INTO "deliveries" VALUES('01a20960d99289e8b5b166bb','01a20960ca2bc3731dcb2d3d','01a20960d990f9e064ababdd','01a20960d97e91be5f142cea','event','ready',NULL,0,1795453671826869,0,0,NULL,NULL,'01a20960d990300f5469fe9d',1,1795453671826440,NULL,NULL,NULL,NULL);
INSERT INTO "deliveries" VALUES('01a20960d99a4e858b040149','01a20960ca2bc3731dcb2d3d','01a20960d998205040ff21cb','01a20960d97e91be5f142cea','event','ready',NULL,0,1795453671834859,0,0,NULL,NULL,'01a20960d9989b5e1c2e102b',2,1795453671834668,NULL,NULL,NULL,NULL);
INSERT INTO "deliveries" VALUES('01a20960d99af808bb04ba5e','01a20960ca2bc3731dcb2d3d','01a20960d998205040ff21cb','01a20960d956963510ee53f5','event','exhausted','http_5xx',1,1795453671954654,2,2,NULL,NULL,'01a20960d9989b5e1c2e102b',2,1795453671834668,1795453671954506,'http_5xx',500,NULL);
INSERT INTO "deliveries" VALUES('01a20960ec302f3d048c5fcf','01a20960ca2bc3731dcb2d3d','01a20960ec2c6cbd05fb8e92','01a20960d97e91be5f142cea','event','ready',NULL,0,1795453676595988,0,0,NULL,NULL,'01a20960ec2cfe19d37b4dac',3,1795453676592031,NULL,NULL,NULL,NULL);
INSERT INTO "deliveries" VALUES('01a20960ec306f3a3ae711b2','01a20960ca2bc3731dcb2d3d','01a20960ec2c6cbd05fb8e92','01a20960d956963510ee53f5','event','ready','http_5xx',1,1795453730360185,1,1,NULL,NULL,'01a20960ec2cfe19d37b4dac',3,1795453676592031,NULL,'http_5xx',500,NULL);
INSERT INTO "deliveries" VALUES('01a20960ec85ad641f13e359','01a20960ca2bc3731dcb2d3d','01a20960ec6356cdc1c3ae0d','01a20960d956963510ee53f5','event','in_flight',NULL,0,1795453676677803,0,1,'01a20960eba17874dfbf3a8c-3','01a20960eba17874dfbf3a8c','01a20960ec6333f92d0bf5da',4,1795453676677581,NULL,NULL,NULL,NULL);
INSERT INTO "deliveries" VALUES('01a20960ec85bbdb92979dde','01a20960ca2bc3731dcb2d3d','01a20960ec6356cdc1c3ae0d','01a20960d97e91be5f142cea','event','ready',NULL,0,1795453676677803,0,0,NULL,NULL,'01a20960ec6333f92d0bf5da',4,1795453676677581,NULL,NULL,NULL,NULL);
INSERT INTO "deliveries" VALUES('01a20960ec917e1f54a45602','01a20960ca2bc3731dcb2d3d','01a20960ec8c9f5f4ba64fa6','01a20960d97e91be5f142cea','event','ready',NULL,0,1795453676689384,0,0,NULL,NULL,'01a20960ec8c7e726d50edf9',5,1795453676689157,NULL,NULL,NULL,NULL);
INSERT INTO "deliveries" VALUES('01a20960ec91f15b402a0b54','01a20960ca2bc3731dcb2d3d','01a20960ec8c9f5f4ba64fa6','01a20960d956963510ee53f5','event','ready',NULL,0,1795453676689384,0,0,NULL,NULL,'01a20960ec8c7e726d50edf9',5,1795453676689157,NULL,NULL,NULL,NULL);
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
INSERT INTO "events" VALUES(1,'01a20960d990f9e064ababdd',1,'01a20960ca2bc3731dcb2d3d','contact.created','01a20960d990300f5469fe9d',1,NULL,1795453671824622,'01a20960d9902c573893bab8','00-84dbd29cb5ada99c45d4971f4d5a6f36-51ba80529d4300c5-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333637312C2264617461223A7B226964223A22303161323039363064393930333030663534363966653964222C226E616D65223A2244656C697665726564222C22656D61696C223A2264656C697665726564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30373A35312E3832345A227D7D','2ad4f64efc0f2b324a9744077923862316fdd1379bce3027ee46188f14b1dbb0',NULL);
INSERT INTO "events" VALUES(2,'01a20960d998205040ff21cb',2,'01a20960ca2bc3731dcb2d3d','contact.created','01a20960d9989b5e1c2e102b',1,NULL,1795453671832941,'01a20960d99849c27d9c39b5','00-07101d50705b681bafaf990a27035c2c-10f0fcfc0519c88c-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333637312C2264617461223A7B226964223A22303161323039363064393938396235653163326531303262222C226E616D65223A22457868617573746564222C22656D61696C223A22657868617573746564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30373A35312E3833325A227D7D','091b96a2e7033206093af4679944f0531f2a14130d49256ef6cfaeef2dff7888',NULL);
INSERT INTO "events" VALUES(3,'01a20960ec2c6cbd05fb8e92',3,'01a20960ca2bc3731dcb2d3d','contact.created','01a20960ec2cfe19d37b4dac',1,NULL,1795453676588012,'01a20960ec24c27968831e9e','00-3c8397e750003b81d05d75a802296d96-088ee2b13ac2c78d-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333637362C2264617461223A7B226964223A22303161323039363065633263666531396433376234646163222C226E616D65223A2257616974696E67222C22656D61696C223A2277616974696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30373A35362E3538385A227D7D','bfc51341fb5300c8cb3921827bf6611455e797f9ed67a822633ea9d0d1f0b759',NULL);
INSERT INTO "events" VALUES(4,'01a20960ec6356cdc1c3ae0d',4,'01a20960ca2bc3731dcb2d3d','contact.created','01a20960ec6333f92d0bf5da',1,NULL,1795453676643376,'01a20960ec62ae94a28b9e2d','00-b7073abde46be03e58e4f9364f87d76c-802ce803816ea490-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333637362C2264617461223A7B226964223A22303161323039363065633633333366393264306266356461222C226E616D65223A2248616E67696E67222C22656D61696C223A2268616E67696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30373A35362E3634335A227D7D','39dcb83894c68ac0d0154d763f9902f8340c904b2b1a0d34fae901e2c7ffbc6b',NULL);
INSERT INTO "events" VALUES(5,'01a20960ec8c9f5f4ba64fa6',5,'01a20960ca2bc3731dcb2d3d','contact.created','01a20960ec8c7e726d50edf9',1,NULL,1795453676684836,'01a20960ec8c5eab19f7770b','00-a2b3f04d439c42ff7342f95778cf9a50-456a7b167c75f501-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333637362C2264617461223A7B226964223A22303161323039363065633863376537323664353065646639222C226E616D65223A22556E636C61696D6564222C22656D61696C223A22756E636C61696D6564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A30373A35362E3638345A227D7D','f700bd39f5d0d1d3dce58dafbeefa611adc9172402e0cabc1ae3f110f3463b2e',NULL);
CREATE TABLE first_account_links (
  digest bytea primary key,
  created_at bigint not null,
  expires_at bigint not null
);
INSERT INTO "first_account_links" VALUES(X'0D8ACDD3D4906DBDED099DD3CEBD7D264700C1E36072167604E9E4A01E95E6D8',1795453663820445,1795540063820445);
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
);
INSERT INTO "lanes" VALUES('01a20960d956963510ee53f5','01a20960ca2bc3731dcb2d3d',1,1,1795453706689818,0);
INSERT INTO "lanes" VALUES('01a20960d97e91be5f142cea','01a20960ca2bc3731dcb2d3d',0,0,1795453671826869,0);
CREATE TABLE nodes (
  id text  primary key,
  epoch bigint not null,
  started_at bigint not null,
  alive_until bigint not null
);
INSERT INTO "nodes" VALUES('01a20960eba17874dfbf3a8c',1,1795453676572131,1795453706572531);
CREATE TABLE outbox_state (
  id bigint primary key check (id = 1),
  seq bigint not null,
  due_mark bigint not null
);
INSERT INTO "outbox_state" VALUES(1,5,1795453676677541);
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
INSERT INTO "schema_migrations" VALUES('outbox',1,'0001_outbox','479a14000f7ee946a5f5833f27b90d23062191c185d9cfdd07db27e816fad7b2',1795453663528370);
INSERT INTO "schema_migrations" VALUES('gateway',1,'0001_accounts','8c5efd9698b1be38a8319d08f0e5592261f93d5abc7945d62d01fcbc3b9fbae7',1795453663559141);
INSERT INTO "schema_migrations" VALUES('gateway',2,'0002_crm','a0f2469e19deab6b14ecd39a77508e19c7d7cc910487052300a3d3f6c3bfbbf8',1795453663561911);
INSERT INTO "schema_migrations" VALUES('gateway',3,'0003_console','1267420ea4e647c04667a6d3cd3a1d02076edc78ebc6b79903fedbed3210a9db',1795453663568079);
INSERT INTO "schema_migrations" VALUES('gateway',4,'0004_sales','9849a8bd6df520047d4e8d1bdbfb76579f749117c19577515935dfb56a3c40b6',1795453663575912);
INSERT INTO "schema_migrations" VALUES('gateway',5,'0005_billing','b63781b7deb470318e895d78c2a41f4cc1352653a3c7f85d379ab49c258b6a82',1795453663600390);
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
INSERT INTO "sessions" VALUES('01a20960d8d5a552481e9410','01a20960ca2bc3731dcb2d3d',X'0294B02AAA010E0C3EDF9D7EADE70C0B8C8575BA11B76726227D211C6D66A0DD','127.0.0.1','Python/3.11 aiohttp/3.14.5',1795453671637937,1795453671637937,1796663271637937,NULL);
CREATE TABLE tallies (
  owner_id text  not null,
  kind text  not null,
  slot bigint not null,
  n bigint not null,
  primary key (owner_id, kind, slot)
);
INSERT INTO "tallies" VALUES('01a20960ca2bc3731dcb2d3d','contacts',13,1);
INSERT INTO "tallies" VALUES('01a20960ca2bc3731dcb2d3d','contacts',11,1);
INSERT INTO "tallies" VALUES('01a20960ca2bc3731dcb2d3d','contacts',12,1);
INSERT INTO "tallies" VALUES('01a20960ca2bc3731dcb2d3d','contacts',10,1);
INSERT INTO "tallies" VALUES('01a20960ca2bc3731dcb2d3d','contacts',9,1);
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
INSERT INTO "users" VALUES('01a20960ca2bc3731dcb2d3d','ana@example.com','ana@example.com','Ana','$argon2id$v=19$m=19456,t=2,p=1$oMnBhQbRIX4wAFFegCxhwQ$iz8IQg0McAvbmhSNYJgLD5rNPmig1rN6YnNlq0MkKfk','America/Sao_Paulo',NULL,1795453667883310,1795453667883310,1);
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
);
INSERT INTO "webhooks" VALUES('01a20960d956963510ee53f5','01a20960ca2bc3731dcb2d3d',1,'http://127.0.0.1:47471/first','["contact.created"]',NULL,'active',NULL,0,NULL,NULL,NULL,X'505B82976777357869D52EB6E2E7A2D61ABB6FD2187CC13EC68799E85452E8E1EA2D7CB1EA3FDF7A95D710A81C52FDE4274BA4348045534CB6118EB3C5B13A2685E6B9D3283EDAEBDC09661B17D0EC86DC24',NULL,NULL,NULL,0,1795453671766155,1795453671766155,1795453671833182,1795453671840493,3,'http_5xx',500,1795453676671330,'closed',NULL,NULL);
INSERT INTO "webhooks" VALUES('01a20960d97e91be5f142cea','01a20960ca2bc3731dcb2d3d',2,'http://127.0.0.1:47471/paused','["contact.created"]',NULL,'paused',NULL,0,NULL,NULL,NULL,X'505B82970387243B5862C599413C0AC9B0ECA4F065CF42DEE547339830A33E2DFB2E85FB635C91508183721CE2054A20037294916F4E1C17B2C36E9E62EA9EED5164B34FD0EF064E259042E99FD83F5FE773',NULL,NULL,NULL,0,1795453671806797,1795453671820183,NULL,NULL,0,NULL,NULL,NULL,'closed',NULL,NULL);
CREATE INDEX events_feed on events (owner_id, seq) where webhook_id is null and seq is not null;
CREATE INDEX events_record on events (owner_id, record_id, pos);
CREATE INDEX webhooks_owner on webhooks (owner_id, created_at desc, id desc);
CREATE INDEX lanes_due on lanes (failing, due_at) where active and due_at is not null;
CREATE UNIQUE INDEX deliveries_once on deliveries (event_id, webhook_id) where origin = 'event';
CREATE INDEX deliveries_again on deliveries (event_id, webhook_id) where origin <> 'event';
CREATE INDEX deliveries_ready on deliveries (webhook_id, retry, next_at) where state = 'ready';
CREATE INDEX deliveries_claimed on deliveries (node_id) where state = 'in_flight';
CREATE INDEX deliveries_held on deliveries (webhook_id, record_id, seq) where state = 'held';
CREATE INDEX deliveries_log on deliveries (webhook_id, id desc);
CREATE INDEX deliveries_ended on deliveries (webhook_id, state, id desc)
  where state in ('exhausted', 'gone', 'cancelled', 'dead');
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',5);
COMMIT;
