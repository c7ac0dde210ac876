-- Deliveries carry the record of their event, so nothing looks for the events of a record. Where many
-- records change, each event cost this index a page of its own.
drop index events_record;
