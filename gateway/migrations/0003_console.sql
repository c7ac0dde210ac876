-- Who is signed in to the console, and the one-time links to create the first account.
-- `reveal` is a new secret, sealed, until the next page has shown it.
-- `digest` is the SHA-256 of what the browser holds, so the table alone signs nobody in.

create table sessions (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null references users (id),
  digest bytea not null unique,
  address text not null,
  agent text not null,
  created_at bigint not null,
  seen_at bigint not null,
  expires_at bigint not null,
  reveal bytea
);
create index sessions_owner on sessions (owner_id, seen_at desc);
create index sessions_old on sessions (expires_at);

create table first_account_links (
  digest bytea primary key,
  created_at bigint not null,
  expires_at bigint not null
);
