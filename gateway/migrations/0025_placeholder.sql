-- additive
select 1;
