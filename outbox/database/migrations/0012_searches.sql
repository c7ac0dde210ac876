-- Searches of the console in deliveries and events.
-- Which records and requests the events of a block of `seq` belong to: four bytes of a checksum for
-- each place. An index would cost each event a page of its own; these are written by a duty, many
-- at once, and read from the newest block on.
create table event_marks (
  first_seq bigint primary key,
  records bytea not null,
  requests bytea not null
);
