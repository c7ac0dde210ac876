-- additive
-- The language of an account's pages and mails: `en` or `pt-BR`, null as the browser asks.
alter table users add column language text;
