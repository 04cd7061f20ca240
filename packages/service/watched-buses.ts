/** Opens the buses of a service, and watches each for outages. Without a bus commands still succeed: the service is degraded. */
import type { Env } from "@todoke/http";
import type { EventBus } from "@todoke/kernel/bus";
import { type BusRequest, openBuses, type ServiceBus, type ServiceSubjects } from "./buses.ts";
import type { OutageOptions, OutageWatch } from "./outages.ts";

export interface BusParts {
  open(request: Omit<BusRequest, "onInfo">): Promise<EventBus>;
  watch(url: string, probe: OutageOptions["probe"]): OutageWatch;
  /** Disposes the part when the service stops, in reverse order. */
  use(part: AsyncDisposable | Disposable): void;
}

export interface WatchedBuses {
  readonly buses: readonly ServiceBus[];
  /** The names of the buses that are away, as /readyz shows them. */
  degraded(): readonly string[];
}

export async function openWatchedBuses(
  subjects: ServiceSubjects,
  env: Env,
  { open, watch, use }: BusParts,
): Promise<WatchedBuses> {
  const outages = new Map<string, OutageWatch>();
  const buses = await openBuses(subjects, env, async (request) => {
    const opening = Promise.withResolvers<EventBus>();
    const outage = watch(request.url, async () => (await opening.promise).check());
    try {
      const bus = await open({ ...request, onError: outage.onError });
      use(bus);
      opening.resolve(bus);
      outages.set(request.url, outage);
      return { bus, onError: outage.onError };
    } finally {
      use(outage); // Ends before the bus, which is unavailable once it is closed.
    }
  });
  const nameOf = ({ emits, consumes }: ServiceSubjects) =>
    buses.length === 1 ? "bus" : `bus of ${[...emits, ...consumes].join(", ")}`;
  return { buses, degraded: () => buses.filter(({ url }) => outages.get(url)?.isDown).map(nameOf) };
}
