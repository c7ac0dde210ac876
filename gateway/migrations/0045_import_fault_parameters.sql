-- additive
-- The parameters of a fault's sentence, as JSON: other languages have a text of their own for its
-- code and their names. A fault from before has none, and its error tells it as it did.
alter table import_faults add column parameters text not null default '{}';
