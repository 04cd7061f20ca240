/**
 * The guarantees of every store of sessions: the same tests for each, on a real engine. A store's own tests cover only what is
 * particular to it.
 */
import { endingConforms } from "./conformance/ending.ts";
import { livingConforms } from "./conformance/living.ts";
import { onceConforms } from "./conformance/once.ts";
import { refreshConforms } from "./conformance/refresh.ts";
import { secrecyConforms } from "./conformance/secrecy.ts";
import { usersConform } from "./conformance/users.ts";
import type { Harness } from "./testing.ts";

export interface StoreUnderTest {
  readonly name: string;
  stage(): Promise<Harness>;
}

export function sessionsConformance(store: StoreUnderTest): void {
  livingConforms(store);
  endingConforms(store);
  usersConform(store);
  refreshConforms(store);
  onceConforms(store);
  secrecyConforms(store);
}
