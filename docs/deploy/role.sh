#!/bin/sh
# For the container of PostgreSQL, on an empty volume: the role and the database of Carteiro, from
# the address that its nodes have. The role owns this database and has no other right.
set -eu
url=$(cat /run/secrets/database-url)
password=${url#*://carteiro:}
psql --set ON_ERROR_STOP=1 --username postgres --set password="${password%%@*}" <<'SQL'
create role carteiro login nosuperuser nocreatedb nocreaterole noreplication nobypassrls
  password :'password';
create database carteiro owner carteiro;
revoke connect, temporary on database carteiro, postgres, template1 from public;
SQL
