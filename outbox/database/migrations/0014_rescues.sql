-- additive
-- The claim that the last counted rescue ended. A process that reports a result for it was alive, so
-- that rescue does not count.
alter table deliveries add column lost_claim text;

-- While order is turned on: whether all that waited has joined lines, so that heads may be chosen.
alter table lanes add column joined boolean not null default false;
