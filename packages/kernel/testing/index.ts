/**
 * What tests of the kernel, of services and of library users need: a database of their own, fast, and ids that can be
 * told apart. Needs a PostgreSQL server at TEST_POSTGRES_URL (`npm test` starts one).
 */
import { setTimeout as sleep } from "node:timers/promises";

export { patient, type TestDatabase, type TestDatabaseOptions, testDatabase } from "./database.ts";
export { freePort } from "./free-port.ts";
export { programOf } from "./program.ts";
export { openWire, type Wire } from "./wire.ts";

/** Ids that a reader of a failed test can tell apart: fixedId(1) is 00000000-0000-7000-8000-000000000001. */
export function fixedId(n: number): string {
  return `00000000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
}

/** Waits for a state, never for a time: asks until `condition` holds, and fails saying what was waited for. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  { withinMs = 60_000 }: { withinMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    await sleep(5);
  }
}
