#!/bin/sh
# After every `todoke migrate`: gives the roles of the services their rights (docs/guides/one-database-per-service.md).
set -e
export PGPASSWORD="$(cat /run/secrets/todoke/POSTGRES_PASSWORD)"
for file in /deploy/postgres/*-role.sql; do
  service=$(basename "$file" -role.sql | tr - _)
  case $service in
    bus) continue ;; # The bus is NATS.
    paper_broker) service=orders ;;
  esac
  psql -v ON_ERROR_STOP=1 -f "$file" "postgres://postgres@postgres:5432/todoke_$service"
done
