/** How many events a consumer has put away, as long as nobody has redriven them: a gauge for an alert that stays. */
import type { Db } from "../db/index.ts";
import { metricCatalogue, watch } from "../telemetry/index.ts";
import { countDead } from "./store.ts";

interface DeadEventsWatched {
  readonly db: Db;
  readonly consumer: string;
  readonly onError?: (error: unknown) => void;
}

export function watchDeadEvents({ db, consumer, onError }: DeadEventsWatched): AsyncDisposable {
  const name = "todoke.inbox.dead.current";
  return watch({
    scope: "@todoke/kernel",
    catalogue: metricCatalogue,
    gauges: [name],
    read: async () => [{ name, value: await countDead(db, consumer), attributes: { consumer } }],
    ...(onError && { onError }),
  });
}
