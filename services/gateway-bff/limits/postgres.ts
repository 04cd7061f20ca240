/**
 * Limits in PostgreSQL. Requests that arrive while a statement runs are counted together by the next one, each key locked
 * once: several requests of one caller in a batch are granted as far as they fit, in their order.
 */
import { type Db, statement } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import type { RetentionPolicy } from "@todoke/kernel/retention";
import { paceOf, takenOf } from "./gcra.ts";
import type { Item, Limiter, Taken } from "./index.ts";

// Its keys stay locked for as long as a batch takes: some milliseconds.
const batchMax = 200;

export function postgresLimiter(db: Db): Limiter {
  return { take: gather<readonly Item[], Taken>({ run: (requests) => takeEach(db, requests), batchMax }) };
}

/** A key whose time has passed says nothing; a minute more spares those who come again from being made anew. */
export const idleLimits: RetentionPolicy = {
  table: "rate_limits",
  finished: "true",
  since: "used_until",
  keepMs: 60_000,
};

async function takeEach(db: Db, requests: readonly (readonly Item[])[]): Promise<readonly Taken[]> {
  const items = requests.flat();
  const keys = [...new Set(items.map(({ key }) => key))];
  const placeOf = new Map(keys.map((key, place) => [key, place + 1]));
  const paces = items.map(({ policy }) => paceOf(policy));
  let last = 0;
  const ends = requests.map((request) => {
    last += request.length;
    return last;
  });
  const { rows } = await statement<{ ahead: readonly bigint[] }>(db, {
    name: "take units",
    text: "select take_units($1, $2, $3, $4, $5, $6) as ahead",
    values: [
      keys,
      ends,
      items.map(({ key }) => placeOf.get(key)),
      items.map(({ units }) => units),
      paces.map(({ eachUs }) => eachUs),
      paces.map(({ slackUs }) => slackUs),
    ],
  });
  const ahead = rows[0]?.ahead.map(Number) ?? [];
  return requests.map((request, place) => {
    const end = ends[place] ?? 0;
    return takenOf(request, ahead.slice(end - request.length, end));
  });
}
