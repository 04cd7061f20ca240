/** The tables of the kernel. Every schema that uses outbox, inbox or idempotency runs these before its own. */
import type { MigrationSet } from "../db/index.ts";

export const kernelMigrations: MigrationSet = { name: "kernel", dir: new URL("./", import.meta.url) };
