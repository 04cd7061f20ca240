/**
 * A nightly job: it reserves tomorrow's bonus for each player. Each reservation has a key of its own, so a job that crashed
 * in the middle is simply run again: every player gets the bonus once.
 *
 *   npm exec -- node examples/nightly-points/main.ts 2026-01-16T00:00:00Z u_1 u_2
 */
import { createClient } from "@todoke/client";

const { POINTS_URL = "http://127.0.0.1:8085", TODOKE_API_KEY = "tdk_dev" } = process.env;
const todoke = createClient({ services: { points: POINTS_URL }, apiKey: TODOKE_API_KEY });
const [execute_at = "", ...users] = process.argv.slice(2);

const items = users.map((user_id) => ({
  idempotency_key: `nightly:${execute_at}:${user_id}`,
  user_id,
  point_amount: 100n,
  execute_at,
  reason: "nightly bonus",
}));
const perRequest = 1_000;
for (let at = 0; at < items.length; at += perRequest) {
  const { results } = await todoke.points.reserveBatch({ items: items.slice(at, at + perRequest) });
  const reserved = results.filter(({ status }) => status === 201);
  const replayed = reserved.filter((result) => result.replayed);
  console.log(`${reserved.length} reserved, ${replayed.length} of them by an earlier run`);
  if (reserved.length < results.length) process.exitCode = 1; // Run it again.
}
