-- additive
-- The keys that belong to this database.
-- A known text that the key ring of the installation has sealed: a ring that cannot open it has the
-- wrong keys.
alter table outbox_state add column key_mark bytea;
-- Why the deliveries of a webhook wait although it is active: its secret or its headers cannot be
-- decrypted. Null after the next attempt.
alter table webhooks add column unreadable text;
