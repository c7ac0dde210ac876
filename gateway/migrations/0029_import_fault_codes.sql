-- additive
-- The field and the code of a fault, null in faults from before: pages tell it in the reader's language.
alter table import_faults add column field text;
alter table import_faults add column code text;
