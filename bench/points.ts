/**
 * Points: changes a second beside pgbench, of many users and of one; a million grants that are due at once, and what others
 * notice of it; and how late a grant is that was booked ahead.
 */
import { changesOverHttp } from "./points/changes.ts";
import { type Bus, dueToGranted } from "./points/delay.ts";
import { drainOfDue } from "./points/drain.ts";
import type { Result } from "./report.ts";

export async function points(postgresUrl: string, buses: readonly Bus[]): Promise<Result[]> {
  return [await changesOverHttp(postgresUrl), await drainOfDue(postgresUrl), await dueToGranted(postgresUrl, buses)];
}
