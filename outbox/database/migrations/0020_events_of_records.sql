-- additive
-- The events of each record in the order of the feed: erasures find a person's events by it. Events
-- enter it with their fan-out, not with the write.
create index events_record on events (owner_id, record_id, seq)
where webhook_id is null and seq is not null;
