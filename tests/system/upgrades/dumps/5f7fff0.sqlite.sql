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
INSERT INTO "api_keys" VALUES('01a20963d331c54482893970','01a20963cfbff3b6ad3ad50f','upgrade','crt_7d3MzkwS',X'DA9E351D2BC1199CC33A9533A81C2D7EA240320C7468C75B2AC982B6E7133EF5','["read","write"]',NULL,1795453867417728,NULL,1795453866801461);
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
INSERT INTO "attempts" VALUES('01a20963cfbff3b6ad3ad50f','01a20963d5892c687e692bb3','01a20963d4c72164d25bce92','01a20963d586da8dc2db8b86',1,'event','success',200,NULL,1795453867408284,NULL,690,NULL,1537,3051,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453867"],["X-Webhook-Signature","sha256=7cc91ac0af1e6ef75bec4f8b295a56cf36952b8a6a2167b2cacdf6e7b63e2d4f"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20963d586da8dc2db8b86"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20963d586da8dc2db8b86"],["webhook-timestamp","1795453867"],["webhook-signature","v1,xhwIvdgW4KDT3QJ1IP17+cWB6TMSYpiGoWyFRyLppJ8="],["traceparent","00-76320525eda423f5c20c35be0adab858-3cab7799b5748d89-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:11:07 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a20963cb9a362a53cc3972');
INSERT INTO "attempts" VALUES('01a20963cfbff3b6ad3ad50f','01a20963d59c84be20050c9b','01a20963d4c72164d25bce92','01a20963d59af9e86ef9f648',1,'event','http_5xx',500,NULL,1795453867422447,NULL,NULL,NULL,42,858,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453867"],["X-Webhook-Signature","sha256=d5a868e9685a8bfa41b65885da377f3936f8f016d2412f54859b3d3ef0349ed9"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20963d59af9e86ef9f648"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20963d59af9e86ef9f648"],["webhook-timestamp","1795453867"],["webhook-signature","v1,mawto8glGl2LZ/XxzhTKWXwdgDTVlQj1OImymdhSjsU="],["traceparent","00-07d5585fb2c7548dd4e8f0591aebfd6e-6f81682ead3d4a5a-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:11:07 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a20963cb9a362a53cc3972');
INSERT INTO "attempts" VALUES('01a20963cfbff3b6ad3ad50f','01a20963d59c84be20050c9b','01a20963d4c72164d25bce92','01a20963d59af9e86ef9f648',2,'event','http_5xx',500,NULL,1795453867526409,NULL,NULL,NULL,846,1137,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453867"],["X-Webhook-Signature","sha256=d5a868e9685a8bfa41b65885da377f3936f8f016d2412f54859b3d3ef0349ed9"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20963d59af9e86ef9f648"],["X-Webhook-Attempt","2"],["X-Webhook-Record-Version","1"],["webhook-id","01a20963d59af9e86ef9f648"],["webhook-timestamp","1795453867"],["webhook-signature","v1,mawto8glGl2LZ/XxzhTKWXwdgDTVlQj1OImymdhSjsU="],["traceparent","00-07d5585fb2c7548dd4e8f0591aebfd6e-2a36bbd04366466b-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:11:07 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a20963cb9a362a53cc3972');
INSERT INTO "attempts" VALUES('01a20963cfbff3b6ad3ad50f','01a20963e7d9d0ef89a05fc3','01a20963d4c72164d25bce92','01a20963e7d4e7cd1ff29a43',1,'event','http_5xx',500,NULL,1795453872094976,NULL,855,NULL,702,2229,'127.0.0.1:47471','http://127.0.0.1:47471/first','[["Content-Type","application/json"],["X-Webhook-Event","contact.created"],["X-Webhook-Timestamp","1795453872"],["X-Webhook-Signature","sha256=77bde434bea35e66315e3f8262e0c460b20edf0246c9653d4285a3a27f470697"],["User-Agent","Carteiro-Webhook/1.0"],["X-Webhook-Id","01a20963e7d4e7cd1ff29a43"],["X-Webhook-Attempt","1"],["X-Webhook-Record-Version","1"],["webhook-id","01a20963e7d4e7cd1ff29a43"],["webhook-timestamp","1795453872"],["webhook-signature","v1,hZGSyXIh8Qx63WJj/1AkmuIBMH6D0D+//nmIT26ADi0="],["traceparent","00-082ae45426cf8cba52384937c304169d-4a884458fde2eec4-01"]]','[["Content-Length","0"],["Date","Mon, 23 Nov 2026 17:11:12 GMT"],["Server","Python/3.11 aiohttp/3.14.5"]]',X'',0,'01a20963e7780432cf588fb3');
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
INSERT INTO "contacts" VALUES('01a20963d586ba1f43d20660','01a20963cfbff3b6ad3ad50f',1,1795453867398389,NULL,'Delivered','delivered@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'delivereddelivered@example.com','delivered','delivered@example.com');
INSERT INTO "contacts" VALUES('01a20963d59a081bc629cc0b','01a20963cfbff3b6ad3ad50f',1,1795453867418315,NULL,'Exhausted','exhausted@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'exhaustedexhausted@example.com','exhausted','exhausted@example.com');
INSERT INTO "contacts" VALUES('01a20963e7d4e3a5debd8e1c','01a20963cfbff3b6ad3ad50f',1,1795453872084726,NULL,'Waiting','waiting@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'waitingwaiting@example.com','waiting','waiting@example.com');
INSERT INTO "contacts" VALUES('01a20963e7e6037f1279b6f9','01a20963cfbff3b6ad3ad50f',1,1795453872102067,NULL,'Hanging','hanging@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'hanginghanging@example.com','hanging','hanging@example.com');
INSERT INTO "contacts" VALUES('01a20963e7eb02faa1e717aa','01a20963cfbff3b6ad3ad50f',1,1795453872107011,NULL,'Unclaimed','unclaimed@example.com',NULL,NULL,NULL,NULL,NULL,'[]','api',NULL,'unclaimedunclaimed@example.com','unclaimed','unclaimed@example.com');
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
INSERT INTO "deliveries" VALUES('01a20963d5892c687e692bb3','01a20963cfbff3b6ad3ad50f','01a20963d586da8dc2db8b86','01a20963d4c72164d25bce92','event','delivered','success',1,1795453867412493,1,1,NULL,NULL,'01a20963d586ba1f43d20660',1,1795453867401988,1795453867411944,'success',200,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963d5897f079eb08247','01a20963cfbff3b6ad3ad50f','01a20963d586da8dc2db8b86','01a20963d5575c29d71449c4','event','ready',NULL,0,1795453867402823,0,0,NULL,NULL,'01a20963d586ba1f43d20660',1,1795453867401988,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963d59c84be20050c9b','01a20963cfbff3b6ad3ad50f','01a20963d59af9e86ef9f648','01a20963d4c72164d25bce92','event','exhausted','http_5xx',1,1795453867528045,2,2,NULL,NULL,'01a20963d59a081bc629cc0b',2,1795453867420942,1795453867527940,'http_5xx',500,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963d59ca08011cbcc9a','01a20963cfbff3b6ad3ad50f','01a20963d59af9e86ef9f648','01a20963d5575c29d71449c4','event','ready',NULL,0,1795453867421183,0,0,NULL,NULL,'01a20963d59a081bc629cc0b',2,1795453867420942,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963e7d904b5ddf7e0ce','01a20963cfbff3b6ad3ad50f','01a20963e7d4e7cd1ff29a43','01a20963d5575c29d71449c4','event','ready',NULL,0,1795453872091114,0,0,NULL,NULL,'01a20963e7d4e3a5debd8e1c',3,1795453872089839,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963e7d9d0ef89a05fc3','01a20963cfbff3b6ad3ad50f','01a20963e7d4e7cd1ff29a43','01a20963d4c72164d25bce92','event','ready','http_5xx',1,1795453931107460,1,1,NULL,NULL,'01a20963e7d4e3a5debd8e1c',3,1795453872089839,NULL,'http_5xx',500,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963e7e77ac0c7bd2b95','01a20963cfbff3b6ad3ad50f','01a20963e7e6e7568039aa89','01a20963d5575c29d71449c4','event','ready',NULL,0,1795453872103921,0,0,NULL,NULL,'01a20963e7e6037f1279b6f9',4,1795453872103717,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963e7e78055065452ba','01a20963cfbff3b6ad3ad50f','01a20963e7e6e7568039aa89','01a20963d4c72164d25bce92','event','in_flight',NULL,0,1795453872103921,0,1,'01a20963e7780432cf588fb3-4','01a20963e7780432cf588fb3','01a20963e7e6037f1279b6f9',4,1795453872103717,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963e7ec2c2df7137f0f','01a20963cfbff3b6ad3ad50f','01a20963e7eb00db1c25c079','01a20963d4c72164d25bce92','event','ready',NULL,0,1795453872108656,0,0,NULL,NULL,'01a20963e7eb02faa1e717aa',5,1795453872108477,NULL,NULL,NULL,NULL,0);
INSERT INTO "deliveries" VALUES('01a20963e7ec887d704d7407','01a20963cfbff3b6ad3ad50f','01a20963e7eb00db1c25c079','01a20963d5575c29d71449c4','event','ready',NULL,0,1795453872108656,0,0,NULL,NULL,'01a20963e7eb02faa1e717aa',5,1795453872108477,NULL,NULL,NULL,NULL,0);
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
INSERT INTO "events" VALUES(1,'01a20963d586da8dc2db8b86',1,'01a20963cfbff3b6ad3ad50f','contact.created','01a20963d586ba1f43d20660',1,NULL,1795453867398389,'01a20963d585e6d0635c1d91','00-76320525eda423f5c20c35be0adab858-aded10e28c6df034-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333836372C2264617461223A7B226964223A22303161323039363364353836626131663433643230363630222C226E616D65223A2244656C697665726564222C22656D61696C223A2264656C697665726564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31313A30372E3339385A227D7D','b499d0b42a12038c4188292aad5062251db2cf585837787d9baeb1d52d0fcd7e',NULL);
INSERT INTO "events" VALUES(2,'01a20963d59af9e86ef9f648',2,'01a20963cfbff3b6ad3ad50f','contact.created','01a20963d59a081bc629cc0b',1,NULL,1795453867418315,'01a20963d597eb979d7a3327','00-07d5585fb2c7548dd4e8f0591aebfd6e-822ef4f95627dd5d-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333836372C2264617461223A7B226964223A22303161323039363364353961303831626336323963633062222C226E616D65223A22457868617573746564222C22656D61696C223A22657868617573746564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31313A30372E3431385A227D7D','361ca382c898bf912e5c2e1b454f95bf2b144d9da49014dd66d4736b1e284051',NULL);
INSERT INTO "events" VALUES(3,'01a20963e7d4e7cd1ff29a43',3,'01a20963cfbff3b6ad3ad50f','contact.created','01a20963e7d4e3a5debd8e1c',1,NULL,1795453872084726,'01a20963e7d3b4f55bd39a49','00-082ae45426cf8cba52384937c304169d-108bdf54be3e1296-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333837322C2264617461223A7B226964223A22303161323039363365376434653361356465626438653163222C226E616D65223A2257616974696E67222C22656D61696C223A2277616974696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31313A31322E3038345A227D7D','5eff0b099f8e9326ce7de0df842a033701367a1468cc0e9d36461d2b4a917b82',NULL);
INSERT INTO "events" VALUES(4,'01a20963e7e6e7568039aa89',4,'01a20963cfbff3b6ad3ad50f','contact.created','01a20963e7e6037f1279b6f9',1,NULL,1795453872102067,'01a20963e7e5d495f4164a09','00-bf5fa8b52dcc41d59265e164bd7e07d6-997fc35a0630d47e-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333837322C2264617461223A7B226964223A22303161323039363365376536303337663132373962366639222C226E616D65223A2248616E67696E67222C22656D61696C223A2268616E67696E67406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31313A31322E3130325A227D7D','ab1be5f10d279666e44b1cee8f777be5216e256a910e5ffcf6a36ece5ea8a068',NULL);
INSERT INTO "events" VALUES(5,'01a20963e7eb00db1c25c079',5,'01a20963cfbff3b6ad3ad50f','contact.created','01a20963e7eb02faa1e717aa',1,NULL,1795453872107011,'01a20963e7ea3088aee5efbe','00-7793edea0f916c678e4067cb07e753f5-884d4fe11363c4fa-01',X'7B226576656E74223A22636F6E746163742E63726561746564222C2274696D657374616D70223A313739353435333837322C2264617461223A7B226964223A22303161323039363365376562303266616131653731376161222C226E616D65223A22556E636C61696D6564222C22656D61696C223A22756E636C61696D6564406578616D706C652E636F6D222C2270686F6E65223A6E756C6C2C22637265617465644174223A22323032362D31312D32335431373A31313A31322E3130375A227D7D','d2c9e96a4d5dd243dcf4a2f7bd088f1ab68824ba370ef7488e754b7296ae3bfc',NULL);
CREATE TABLE figures (
  subject_id text  not null,
  span bigint not null,
  at bigint not null,
  result text  not null,
  count bigint not null,
  total_us bigint not null,
  t0 integer not null, t1 integer not null, t2 integer not null, t3 integer not null,
  t4 integer not null, t5 integer not null, t6 integer not null, t7 integer not null,
  t8 integer not null, t9 integer not null, t10 integer not null, t11 integer not null,
  t12 integer not null, t13 integer not null,
  primary key (subject_id, at, span, result)
) without rowid;
INSERT INTO "figures" VALUES('01a20963cfbff3b6ad3ad50f',300000000,1795453800000000,'event',5,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0);
INSERT INTO "figures" VALUES('01a20963d4c72164d25bce92',300000000,1795453800000000,'exhausted',1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0);
INSERT INTO "figures" VALUES('01a20963d4c72164d25bce92',300000000,1795453800000000,'http_5xx',3,4224,3,0,0,0,0,0,0,0,0,0,0,0,0,0);
INSERT INTO "figures" VALUES('01a20963d4c72164d25bce92',300000000,1795453800000000,'success',1,3051,1,0,0,0,0,0,0,0,0,0,0,0,0,0);
CREATE TABLE first_account_links (
  digest bytea primary key,
  created_at bigint not null,
  expires_at bigint not null
);
INSERT INTO "first_account_links" VALUES(X'2A99E7C46F9DFD088992A6DD11E34A50C014D7F1E192CFC82B8C18794F8D4BD6',1795453864946005,1795540264946005);
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
INSERT INTO "lanes" VALUES('01a20963d4c72164d25bce92','01a20963cfbff3b6ad3ad50f',1,1,1795453902108978,0,1795453872108975,3);
INSERT INTO "lanes" VALUES('01a20963d5575c29d71449c4','01a20963cfbff3b6ad3ad50f',0,0,1795453866402823,0,0,0);
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
INSERT INTO "nodes" VALUES('01a20963e7780432cf588fb3',1,1795453872080485,1795453902080769);
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
, figures_since bigint not null default 0);
INSERT INTO "outbox_state" VALUES(1,5,1795453872098825,1795453864700009);
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
INSERT INTO "schema_migrations" VALUES('outbox',1,'0001_outbox','479a14000f7ee946a5f5833f27b90d23062191c185d9cfdd07db27e816fad7b2',1795453864685352);
INSERT INTO "schema_migrations" VALUES('outbox',2,'0002_turns','9a53cf041992be067f18b45867d72045e49b96f0b19191dbc7f578ee78f73a0e',1795453864694150);
INSERT INTO "schema_migrations" VALUES('outbox',3,'0003_duties','d5ff5d160f013fa55a2699878a06b21c83be969f2eb542f4b1a18c9ef1da849d',1795453864697612);
INSERT INTO "schema_migrations" VALUES('outbox',4,'0004_figures','82b8b17f763130b0f942a51ef74a324a8d6cc739db821cf9fef5898d01508d2d',1795453864699642);
INSERT INTO "schema_migrations" VALUES('gateway',1,'0001_accounts','8c5efd9698b1be38a8319d08f0e5592261f93d5abc7945d62d01fcbc3b9fbae7',1795453864706246);
INSERT INTO "schema_migrations" VALUES('gateway',2,'0002_crm','a0f2469e19deab6b14ecd39a77508e19c7d7cc910487052300a3d3f6c3bfbbf8',1795453864713085);
INSERT INTO "schema_migrations" VALUES('gateway',3,'0003_console','1267420ea4e647c04667a6d3cd3a1d02076edc78ebc6b79903fedbed3210a9db',1795453864720194);
INSERT INTO "schema_migrations" VALUES('gateway',4,'0004_sales','9849a8bd6df520047d4e8d1bdbfb76579f749117c19577515935dfb56a3c40b6',1795453864724095);
INSERT INTO "schema_migrations" VALUES('gateway',5,'0005_billing','ca08f492f8ceff8578c1ea189caa99fed5531cdbd8526b2219ecf9ca6402fb9b',1795453864730938);
INSERT INTO "schema_migrations" VALUES('gateway',6,'0006_duties','a41674b7f80fe1b2fd7558ae8c8e39d92f2b10485159d3b3ea5fea558ad647b7',1795453864738365);
INSERT INTO "schema_migrations" VALUES('gateway',7,'0007_pending_ends','c7d2585e20f86e5e867b919ab9fc5898fee88413e80f28c34241a523b3e11d8f',1795453864739414);
INSERT INTO "schema_migrations" VALUES('gateway',8,'0008_stores','35bde929300965617079709a57ee8f825bf15dd04aae99651228f74c5aab3941',1795453864741218);
INSERT INTO "schema_migrations" VALUES('gateway',9,'0009_outcomes','a1dd2667fffca60aa4f43367022b1bedf661a41dc7c520226c92d66e70bebd89',1795453864743618);
INSERT INTO "schema_migrations" VALUES('gateway',10,'0010_contact_emails','38151769be9a9b8b805e4d557f4c536e0ab030bd3cf03e14e242a37c470fa3fb',1795453864751833);
INSERT INTO "schema_migrations" VALUES('gateway',11,'0011_contact_emails_folded','639ec4107ab0341b831036f906cec4fb715a32a4a9f7eb6e84d566a38fd34735',1795453864754574);
INSERT INTO "schema_migrations" VALUES('gateway',12,'0012_ebooks','cc67e88a2ed16f693baca5ef55382d56044db1a43fc91362af56312244c06549',1795453864758057);
INSERT INTO "schema_migrations" VALUES('gateway',13,'0013_carts','01e2d32a30b3fa073d55b2772404b57767d6241c330219816cd4dc6136423ac6',1795453864760425);
INSERT INTO "schema_migrations" VALUES('gateway',14,'0014_catalogue','6a1ca8ebd65e7408c09ded4bca6e9cf76e5fe52849fc41f09a8f3c93644620f1',1795453864768903);
INSERT INTO "schema_migrations" VALUES('gateway',15,'0015_customers','4ebcde197f9a3ac3055e50f06731898b8176b32ecb313fed605c13e972f71b0e',1795453864774058);
INSERT INTO "schema_migrations" VALUES('gateway',16,'0016_orders','4ae990c71727b999b377bb074861e06c82ea328addc853e09acd55fc06414aed',1795453864788889);
INSERT INTO "schema_migrations" VALUES('gateway',17,'0017_reviews','e12da897894db70ffb2d98fed051fb3bce86aa76e2fb41c8c1803b946c4a63c3',1795453864793568);
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
INSERT INTO "sessions" VALUES('01a20963d409d25d655db500','01a20963cfbff3b6ad3ad50f',X'4F996E4A3E3E3F76A4E7A0A5816FAD111338F07EE8F29A99FAAE084CA75077CE','127.0.0.1','Python/3.11 aiohttp/3.14.5',1795453867017731,1795453867017731,1796663467017731,NULL);
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
INSERT INTO "tallies" VALUES('01a20963cfbff3b6ad3ad50f','contacts',0,1);
INSERT INTO "tallies" VALUES('01a20963cfbff3b6ad3ad50f','contacts',11,1);
INSERT INTO "tallies" VALUES('01a20963cfbff3b6ad3ad50f','contacts',12,1);
INSERT INTO "tallies" VALUES('01a20963cfbff3b6ad3ad50f','contacts',9,1);
INSERT INTO "tallies" VALUES('01a20963cfbff3b6ad3ad50f','contacts',10,1);
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
INSERT INTO "users" VALUES('01a20963cfbff3b6ad3ad50f','ana@example.com','ana@example.com','Ana','$argon2id$v=19$m=19456,t=2,p=1$hPyLGy9Gmzm2asjmHz8dtA$VHpl/IkQMMki6qgT+otHkzD5TzImoCgD9C6vdmat6e8','America/Sao_Paulo',NULL,1795453865919336,1795453865919336,1);
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
INSERT INTO "webhooks" VALUES('01a20963d4c72164d25bce92','01a20963cfbff3b6ad3ad50f',1,'http://127.0.0.1:47471/first','["contact.created"]',NULL,'active',NULL,0,NULL,NULL,NULL,X'505B82976A6D0874AEFF4BEE6BA352BB7C956676F76D0F10EF3DAA7451885534D3B952D7C8B9F32ED9A180BB1BE7DF9EE525289E72A9F697268EB1BDFBCB6FB3261F4A9C4556B738D8B4E86F26EAB2A29196',NULL,NULL,NULL,0,1795453867207054,1795453867207054,1795453867411944,1795453867423837,3,'http_5xx',500,1795453872097601,'closed',NULL,NULL,NULL);
INSERT INTO "webhooks" VALUES('01a20963d5575c29d71449c4','01a20963cfbff3b6ad3ad50f',2,'http://127.0.0.1:47471/paused','["contact.created"]',NULL,'paused',NULL,0,NULL,NULL,NULL,X'505B8297EB734BC8EEF5FD4547FC610530BD178DDC75A4FA75F9EAE4B35156D5B854061D9AD13BC59E4BB087E0CC47B7F52D4B72FB67940BAD0A83559BDF1D40B6CF0134EF4CC0C6A6E89BF611BA0C58D60D',NULL,NULL,NULL,0,1795453867351445,1795453867384487,NULL,NULL,0,NULL,NULL,NULL,'closed',NULL,NULL,NULL);
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
CREATE INDEX figures_age on figures (span, at);
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
