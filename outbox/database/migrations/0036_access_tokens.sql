-- additive
-- Webhooks whose receiver wants an access token: the settings of its token endpoint with the client
-- secret, sealed. The turn at once tells the drain of them; its text is that of 0035 but for the one
-- line that names the columns of a webhook. Nodes of the release before call the older form.
alter table webhooks add column oauth2 bytea;
/*postgres
create function drain_at_once_2(
  plan json, result_hooks text[], result_ids text[], result_claims text[], result_tries bigint[],
  result_reasons text[], contents text[], body_digests text[], event_digests text[], answers text[],
  bodies bytea[], mine boolean
) returns table (
  turn json, id text, owner_id text, event_id text, webhook_id text, origin text, tries bigint,
  attempts bigint, retry boolean, ordered boolean, sequence bigint, repeats bigint, lag_us bigint,
  name text, record_id text, record_version bigint, occurred_at bigint, request_id text,
  traceparent text, body_digest text, about_id text, erased_at bigint, size bigint, body bytea
) language plpgsql as $$ begin return; end $$;
do $$
declare
  before constant text := pg_get_functiondef(to_regproc('drain_at_once_1'));
  after constant text := replace(
    replace(before, 'drain_at_once_1', 'drain_at_once_2'),
    'w.proxy, w.thin))', 'w.proxy, w.thin, encode(w.oauth2, ''hex'')))');
begin
  if position('w.oauth2' in after) = 0 then
    raise exception 'drain_at_once_1 has another text';
  end if;
  execute after;
end $$;
*/
