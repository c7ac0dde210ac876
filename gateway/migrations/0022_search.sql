-- The full-text index of the products that stores show, and lists of those in stock.

-- The terms of a product, each between two spaces; see gateway.records.values.words.
create table product_terms (
  n /*sqlite integer primary key autoincrement*/ /*postgres bigint generated always as identity*/,
  record_id text /*sqlite not null unique*/ /*postgres collate "C" primary key*/
    references products (id) on delete cascade,
  store_id text /*postgres collate "C"*/ not null,
  words text /*postgres collate "C"*/ not null
);
create index product_terms_newest on product_terms (store_id, n);
-- So that a search reads no words, which are long.
/*sqlite
create index product_terms_ids on product_terms (n, record_id);
*/

-- Prefixes of up to eight letters, after a store of 24 and the kind of the term, are terms too, so
-- that each search reads one list of the index in order.
/*sqlite
create virtual table product_index using fts5 (
  words, content='product_terms', content_rowid='n', detail='none', columnsize=0,
  tokenize='ascii', prefix='26 27 28 29 30 31 32 33'
);
create trigger product_terms_come after insert on product_terms begin
  insert into product_index (rowid, words) values (new.n, new.words);
end;
create trigger product_terms_change after update of words on product_terms
when new.words <> old.words begin
  insert into product_index (product_index, rowid, words) values ('delete', old.n, old.words);
  insert into product_index (rowid, words) values (new.n, new.words);
end;
create trigger product_terms_go after delete on product_terms begin
  insert into product_index (product_index, rowid, words) values ('delete', old.n, old.words);
end;
*/
-- Without the list of pending entries, which each search would read through.
/*postgres
create index product_terms_words on product_terms
  using gin (array_to_tsvector(string_to_array(btrim(words), ' '))) with (fastupdate = off);
*/

-- The products in stock are listed once more, with U+001E before the value.
insert into product_shelves (record_id, value, store_id, created_at, sort_name, price)
select s.record_id, /*sqlite char(30)*/ /*postgres chr(30)*/ || s.value, s.store_id, s.created_at,
  s.sort_name, s.price
from product_shelves s join products p on p.id = s.record_id
where p.stock is null or p.stock > 0;

-- Triggers, because orders change stocks with one statement.
/*sqlite
create trigger products_sold_out after update of stock on products
when new.stock <= 0 and (old.stock is null or old.stock > 0) begin
  delete from product_shelves where record_id = new.id
    and value >= char(30) and value < char(31);
end;
create trigger products_in_stock_again after update of stock on products
when old.stock <= 0 and (new.stock is null or new.stock > 0) begin
  insert into product_shelves (record_id, value, store_id, created_at, sort_name, price)
  select record_id, char(30) || value, store_id, created_at, sort_name, price
  from product_shelves where record_id = new.id and (value < char(30) or value >= char(31))
  on conflict do nothing;
end;
*/
/*postgres
create function list_stock() returns trigger language plpgsql as $$
begin
  if new.stock <= 0 then
    delete from product_shelves where record_id = new.id
      and value >= chr(30) and value < chr(31);
  else
    insert into product_shelves (record_id, value, store_id, created_at, sort_name, price)
    select record_id, chr(30) || value, store_id, created_at, sort_name, price
    from product_shelves where record_id = new.id and (value < chr(30) or value >= chr(31))
    on conflict do nothing;
  end if;
  return null;
end
$$;
create trigger products_stock_listed after update of stock on products for each row
  when ((coalesce(old.stock, 1) > 0) <> (coalesce(new.stock, 1) > 0))
  execute function list_stock();
*/
