-- The duties of the installation: when the last run of each began and ended, on the due clock.
create table duties (
  name text /*postgres collate "C"*/ primary key,
  began_at bigint not null,
  ended_at bigint
);

-- SQLite reads a partial index alone only when the index also has the column of its condition;
-- without it, each row counted or claimed cost a look into the table.
/*sqlite
drop index deliveries_ready;
create index deliveries_ready on deliveries (webhook_id, retry, next_at, state)
  where state = 'ready';
*/

-- Secrets that were replaced; nearly no webhook has one.
create index webhooks_old_secret on webhooks (old_secret_until) where old_secret_until is not null;

-- For the gauges: how many webhooks stand how, without reading their rows.
create index webhooks_standing on webhooks (state, circuit);
