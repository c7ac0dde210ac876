-- additive
-- The export of a customer reads his reviews a few at a time, in the order of their time.
create index reviews_of_customer on reviews (customer_id, created_at, id)
  where customer_id is not null;
