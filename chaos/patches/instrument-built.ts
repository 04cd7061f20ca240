/** Started before a built program, which has its failpoints: checks their names, and shifts the clock by CHAOS_SKEW_MS. */
import { failpoints } from "./failpoints.ts";
import { named, readOrders } from "./orders.ts";
import { skewClock } from "./skewed-clock.ts";

const { CHAOS_FAILPOINTS, CHAOS_SKEW_MS } = process.env;
if (CHAOS_SKEW_MS) skewClock(Number(CHAOS_SKEW_MS));
const names = readOrders(CHAOS_FAILPOINTS).map(({ name }) => name);
named(failpoints, names, "failpoint");
