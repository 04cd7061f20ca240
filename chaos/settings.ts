/**
 * The times of a run: shorter than the defaults, so that a minute has room for many faults, with the same proportions (a lease is
 * renewed after a third, backoff doubles, a poll is much shorter than a lease).
 */
export const leaseMs = 2_500;

export const workerSettings = { leaseMs, pollMs: 100 };
export const backoff = { baseMs: 100, capMs: 2_000 };

/** How long a relay waits for the ack of a publish. */
export const publishTimeoutMs = 1_500;

/** Client timeout: longer than any healthy response, shorter than most outages. */
export const requestTimeoutMs = 2_000;

/** How long the system may take to finish everything after the last fault. */
export const quietMs = 60_000;

export const busKinds = ["postgres", "nats", "rabbitmq"] as const;
export type BusKind = (typeof busKinds)[number];

/** Consumer that reads the whole bus at the end. On RabbitMQ it has a queue from the start, because only queues keep events. */
export const auditor = "auditor";
