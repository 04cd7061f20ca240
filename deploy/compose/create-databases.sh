#!/bin/sh
# Runs in the PostgreSQL container when its data folder is new: the databases and roles of all services, and one for Keycloak.
set -e
run() { psql -v ON_ERROR_STOP=1 --username postgres "$@"; }
run -f /deploy/postgres/databases.sql
run -f /run/secrets/todoke/role-passwords.sql
run -v password="$(cat /run/secrets/todoke/KEYCLOAK_PASSWORD)" <<'SQL'
create role keycloak login password :'password';
create database keycloak owner keycloak;
SQL
