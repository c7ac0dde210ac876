-- additive
-- The open deals of each stage, newest first, so that a column of the board reads its own cards
-- alone. A deal without a stage is under '', as in deal_totals; the engines disagree on where nulls
-- stand.
create index deals_open on deals (owner_id, (coalesce(stage, '')), created_at desc, id desc)
  where status = 'open';
