/**
 * The event bus on PostgreSQL: messages and deliveries are rows, and the kernel's claims work the deliveries.
 *
 * Beyond the guarantees of every bus, it deduplicates by event id for as long as messages are kept, and it keeps the order of an
 * aggregate after a retry and across processes, because a claim never takes a row past an unfinished one.
 */
export {
  migratePostgresBus,
  openPostgresBus,
  type PostgresBusOptions,
  readPostgresBusLag,
  readPostgresDeliveries,
} from "./bus.ts";
export type { WaitingDelivery } from "./store.ts";
