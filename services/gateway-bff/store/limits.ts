/** The SQL of rate limits: one call of the function `take_units` counts a batch of requests. */
import { type LimitItem, toPace } from "@todoke/http";
import { type Db, runStatement } from "@todoke/kernel/db";
import type { RetentionPolicy } from "@todoke/kernel/retention";

/** Keeps an unused key for a minute more, so that a caller who returns soon needs no new row. */
export const idleLimits: RetentionPolicy = {
  table: "rate_limits",
  finished: "true",
  since: "used_until",
  keepMs: 60_000,
};

/** Returns, per request and item, how far the item's key was ahead of the clock, in microseconds. */
export async function takeUnits(db: Db, requests: readonly (readonly LimitItem[])[]): Promise<readonly number[][]> {
  const items = requests.flat();
  const keys = [...new Set(items.map(({ key }) => key))];
  const ordinals = new Map(keys.map((key, index) => [key, index + 1]));
  const paces = items.map(({ policy }) => toPace(policy));
  let last = 0;
  const ends = requests.map((request) => {
    last += request.length;
    return last;
  });
  const { rows } = await runStatement<{ ahead: readonly bigint[] }>(db, {
    name: "take units",
    text: "select take_units($1, $2, $3, $4, $5, $6) as ahead",
    values: [
      keys,
      ends,
      items.map(({ key }) => ordinals.get(key)),
      items.map(({ units }) => units),
      paces.map(({ eachUs }) => eachUs),
      paces.map(({ slackUs }) => slackUs),
    ],
  });
  const ahead = rows[0]?.ahead.map(Number) ?? [];
  return requests.map((request, index) => {
    const end = ends[index] ?? 0;
    return ahead.slice(end - request.length, end);
  });
}
