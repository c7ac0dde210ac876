-- additive
-- The lanes of each owner that wait, the longest due first: turns go round owners.
create index lanes_owners on lanes (failing, owner_id, due_at)
where active and due_at is not null;
