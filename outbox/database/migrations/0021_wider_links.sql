-- additive
-- From now on the digest of an attempt also covers the state that the attempt gave its delivery, and
-- name, record and time of its event: see outbox.queue.chain. Both are null in earlier rows.
alter table attempts add column event_digest bytea;
alter table attempts add column state text;
