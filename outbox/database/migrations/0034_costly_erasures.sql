-- additive
-- How many units of a request to erase a person were too much: each one halves the next ones, and
-- requests that were put aside less often go first.
alter table erasures add column put_aside bigint not null default 0;
