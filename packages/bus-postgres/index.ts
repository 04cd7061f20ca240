/**
 * The event bus on PostgreSQL: messages and deliveries are rows, and deliveries are worked by the kernel's claims.
 *
 * Besides what every bus promises, it dedupes by event id for as long as it keeps messages, and it keeps the order of an
 * aggregate also after a retry and across processes, because a claim never takes a row past an unfinished one.
 */
export { openPostgresBus, type PostgresBusOptions } from "./bus.ts";
