/** The kernel's tables. A schema that uses the outbox, the inbox or idempotency keys runs these before its own. */
import type { MigrationSet } from "../db/index.ts";

export const kernelMigrations: MigrationSet = { name: "kernel", dir: new URL("./", import.meta.url) };
