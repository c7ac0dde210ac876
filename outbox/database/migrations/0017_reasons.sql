-- additive
-- Why a job ended that nobody cancelled.
alter table jobs add column reason text;
-- Why a request for an erasure cannot be worked off: it is kept, and left alone.
alter table erasures add column error text;
