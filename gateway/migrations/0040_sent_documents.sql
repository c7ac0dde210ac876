-- additive
-- What an owner's quotes and invoices say about the company that sends them. `logo` is a PNG or JPEG
-- file. The prefixes are those of new numbers, null for the usual one.
create table company_settings (
  owner_id text /*postgres collate "C"*/ primary key references users (id),
  version bigint not null,
  trade_name text,
  legal_name text,
  cnpj text,
  address text,
  phone text,
  bank_details text,
  pix_key text,
  quote_prefix text,
  invoice_prefix text,
  order_prefix text,
  logo bytea,
  logo_type text
);

-- Links by which a customer opens a quote or an invoice, as digests of their tokens; `resource` is the
-- noun of the record.
create table document_links (
  digest bytea primary key,
  owner_id text /*postgres collate "C"*/ not null,
  resource text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null,
  created_at bigint not null,
  expires_at bigint not null
);
create index document_links_record on document_links (record_id);
create index document_links_owner on document_links (owner_id);
create index document_links_expiring on document_links (expires_at);
