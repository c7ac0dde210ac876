-- additive
-- The order by a date from the latest on, with records without one last.
create index tasks_due_falling on tasks (owner_id, (coalesce(due_at, -9223372036854775807)), id);
create index deals_close_falling
  on deals (owner_id, (coalesce(expected_close_at, -9223372036854775807)), id);
