-- additive
-- Erasures whose asker wants to know what they did: `subject` is the asker's name for one or more
-- requests. Such a request stays, with `done_at` and its counts, until the asker has read them.
alter table erasures add column subject text /*postgres collate "C"*/;
alter table erasures add column done_at bigint;
alter table erasures add column events bigint not null default 0;
alter table erasures add column deliveries bigint not null default 0;
alter table erasures add column answers bigint not null default 0;
create index erasures_subject on erasures (subject) where subject is not null;
