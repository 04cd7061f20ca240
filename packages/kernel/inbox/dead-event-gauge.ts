/** The gauge of a consumer's dead-lettered events. */
import type { Db } from "../db/index.ts";
import { observeGauges } from "../telemetry/index.ts";
import { inboxDeadLetters } from "./store.ts";

interface DeadEventsOptions {
  readonly db: Db;
  readonly consumer: string;
  readonly onError?: (error: unknown) => void;
}

/** Reports the dead letters of a consumer as a gauge until disposed. */
export function observeDeadEvents({ db, consumer, onError }: DeadEventsOptions): AsyncDisposable {
  const name = "todoke.inbox.dead.current";
  const deadLetters = inboxDeadLetters(consumer);
  return observeGauges({
    gauges: [name],
    read: async () => [{ name, value: await deadLetters.count(db), attributes: { consumer } }],
    ...(onError && { onError }),
  });
}
