/** Starts the clients of a run: those that send commands, and those that play. */
import { type ClientOptions, type Counts, runClient } from "./client.ts";
import type { Harness } from "./harness.ts";
import type { Line, Writer } from "./history.ts";
import { type Random, seededRandom } from "./random.ts";
import type { ServiceUnderTest } from "./services/index.ts";

export interface ClientsOptions {
  readonly harness: Harness;
  readonly seed: string;
  /** Commands per second. */
  readonly rate: number;
  readonly history: Writer<Line>;
  readonly counts: Counts;
  readonly stopping: AbortSignal;
  /** Clients of each service. Default: 32. */
  readonly clients?: number;
}

/** Enough that one unavailable process does not block all of them. */
const defaultClients = 32;

/** Starts the clients of all services; each promise resolves when its client has finished. */
export function startClients(load: ClientsOptions): Promise<void>[] {
  return load.harness.services.flatMap((service) => {
    const { name, actors, workload } = service;
    const random = seededRandom(`${load.seed}/${name}`);
    const { harness, history, stopping } = load;
    return [
      ...(actors ? [actors({ harness, random, history, stopping, where: processPicker(load, name, random) })] : []),
      ...(workload ? startCommands(load, { ...service, workload }) : []),
    ];
  });
}

/** Picks a process of the service that serves. */
export const processPicker =
  ({ harness }: Pick<ClientsOptions, "harness">, service: string, random: Random): ClientOptions["where"] =>
  () => {
    const serving = harness.slots.flatMap((slot) =>
      slot.service === service && slot.http ? [{ name: slot.name, url: slot.http.url }] : [],
    );
    return serving.length > 0 ? random.pick(serving) : undefined;
  };

/** A service with commands. */
type Called = ServiceUnderTest & Required<Pick<ServiceUnderTest, "workload">>;

function startCommands(load: ClientsOptions, { name, workload, share = 1 }: Called): Promise<void>[] {
  const { seed, rate, history, counts, stopping, clients = defaultClients } = load;
  return Array.from({ length: clients }, (_, n) => {
    const random = seededRandom(`${seed}/${name}/client ${n}`);
    const where = processPicker(load, name, random);
    const intervalMs = (clients * 1_000) / (rate * share);
    return runClient(
      { workload: workload(random.for("wishes")), random, history, where, stopping, count: counts },
      intervalMs,
    );
  });
}
