-- additive
-- Owners that move between two databases or have done so; an owner without a row is here. The row
-- of `move_id` is in both databases, each with the address of the other one: see
-- outbox.queue.upkeep.owner_moves.
create table owners (
  id text /*postgres collate "C"*/ primary key,
  state text not null check (state in ('here', 'leaving', 'gone')),
  move_id text /*postgres collate "C"*/ not null,
  peer text not null,
  changed_at bigint not null
);
