/**
 * The times of a run. Everything that waits in production waits here too, only less, so that a minute has room for
 * many faults: the proportions are those of the defaults (a lease is renewed at a third of it, a retry is put off and
 * doubled, a poll is much shorter than a lease).
 */
export const leaseMs = 2_500;

export const workerSettings = { leaseMs, pollMs: 100 };
export const backoff = { baseMs: 100, capMs: 2_000 };

/** How long a relay waits for "stored". */
export const publishTimeoutMs = 1_500;

/** From then on a client takes an answer for lost. Longer than any healthy one takes, shorter than most outages. */
export const requestTimeoutMs = 2_000;

/** How long the system may take to become quiet once the nemesis has stopped. */
export const quietMs = 60_000;

export const busKinds = ["postgres", "nats", "rabbitmq"] as const;
export type BusKind = (typeof busKinds)[number];

/** Reads the whole bus at the end. On RabbitMQ it has a queue from the start, for there only a queue keeps events. */
export const auditor = "auditor";
