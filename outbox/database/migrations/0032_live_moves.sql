-- additive
-- An owner may move between two databases of PostgreSQL while servers use both: what changes
-- meanwhile is noted in `move_changes`, as the key of a row. See outbox.queue.upkeep.owner_moves for
-- the states.
/*postgres
alter table owners drop constraint owners_state_check;
alter table owners add constraint owners_state_check
  check (state in ('here', 'copying', 'resting', 'leaving', 'gone', 'arriving'));
*/
create table move_changes (
  number /*sqlite integer primary key*/
    /*postgres bigint generated always as identity primary key*/,
  mover text /*postgres collate "C"*/ not null,
  name text not null,
  key text not null
);
