/**
 * Test helpers for the kernel, for services and for library users: a database per test, a fault-injecting proxy, readable
 * IDs. Needs a PostgreSQL server at TEST_POSTGRES_URL (`npm test` starts one).
 */
import { setTimeout as sleep } from "node:timers/promises";

export { type CertificateFiles, createCa, type TestCa } from "./certificates.ts";
export { longTimeouts, type TestDatabase, type TestDatabaseOptions, testDatabase } from "./database.ts";
export { type FaultProxy, openFaultProxy } from "./fault-proxy.ts";
export { freePort } from "./free-port.ts";
export { genericPlan } from "./generic-plan.ts";
export { findBuiltProgram, type ProgramVariant, resolveProgram } from "./program.ts";
export { repetitions } from "./repetitions.ts";

/** Readable UUIDs: fixedId(1) is 00000000-0000-7000-8000-000000000001. */
export function fixedId(n: number): string {
  return `00000000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
}

/** Polls until `condition` holds. Fails with `what` after a timeout: `until("the event is published", …)`. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  { withinMs = 60_000 }: { withinMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`timed out after ${withinMs} ms waiting until ${what}`);
    await sleep(5);
  }
}
