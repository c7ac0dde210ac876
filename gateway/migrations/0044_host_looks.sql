-- additive
-- When a hostname is looked for next, null for one that is looked for no more, and since when it
-- has lacked a proof: 0 until the first look.
alter table store_hosts add column due_at bigint default 0;
alter table store_hosts add column lacks_since bigint not null default 0;
create index store_hosts_due on store_hosts (due_at);
drop index store_hosts_asked;
