-- additive
-- The number of a delivery among those of its event to its webhook: 0 for the first, more for each
-- replay. Ids begin with the wall time, which may go back.
alter table deliveries add column nth bigint not null default 0;

-- The last place of the webhook's chain when its secret was replaced: attempts up to it are signed
-- with other secrets, whatever their times are.
alter table webhooks add column secret_place bigint not null default 0;
