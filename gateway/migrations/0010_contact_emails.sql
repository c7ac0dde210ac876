-- The email of a contact in the form in which addresses are compared; the next step fills it in.

alter table contacts add column email_folded text /*postgres collate "C"*/;
create index contacts_email on contacts (owner_id, email_folded, created_at, id)
  where email_folded is not null;
create index contacts_unfolded on contacts (id) where email is not null and email_folded is null;
