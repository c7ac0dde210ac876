#!/bin/sh
# Writes the passwords of compose.postgres.yaml, each into a file of the folder secrets beside it.
# The users in the containers read the files; on this machine nobody else enters the folder.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir secrets
printf 'postgresql://carteiro:%s@postgres:5432/carteiro' "$(openssl rand -hex 24)" \
  > secrets/database-url
openssl rand -hex 24 > secrets/postgres-password
openssl rand -hex 12 > secrets/grafana-password
chmod 0444 secrets/*
