/**
 * Sends reservations at a constant rate: some due long ago, some soon, with and without an Idempotency-Key. Every twelfth is for
 * a user with the maximum balance and must fail without affecting the others.
 */
import { setInterval as ticks } from "node:timers/promises";
import type { PointsClient } from "./points-client.ts";

/** A user with the maximum balance. */
export const fullUser = "u_full";
const fullPoints = "9223372036854775807";
/** The final status of every reservation of a user. */
export const expectedStatus = (user: string) => (user === fullUser ? "FAILED" : "DONE");

export interface Reservation {
  readonly id: string;
  readonly user: string;
  readonly amount: number;
}

const perSecond = 30;
/** Bounds the load on a busy machine. */
const inFlightMax = 60;
const users = 10;
const dueInMs = [-3_600_000, 0, 150, 500];

/** Call once, before the first reservation. */
export const fillFullUser = (client: PointsClient) =>
  client.request({
    method: "PUT",
    path: "/point/add",
    body: { user_id: fullUser, point_amount: fullPoints },
    key: "full",
  });

export function openReservationLoad(client: PointsClient) {
  const accepted: Reservation[] = [];
  let n = 0;
  let running: { readonly stopping: AbortController; readonly ended: Promise<void> } | undefined;

  async function reserve(index: number): Promise<void> {
    const user = index % 12 === 11 ? fullUser : `u_${index % users}`;
    const amount = 1 + (index % 7);
    const executeAt = new Date(Date.now() + (dueInMs[index % dueInMs.length] ?? 0)).toISOString();
    const { id } = await client.request<{ id: string }>({
      method: "POST",
      path: index % 3 === 0 ? "/v1/points/reservations" : "/point/reserve",
      body: { user_id: user, point_amount: amount, execute_at: executeAt, reason: `reservation ${index}` },
      // Without a key, the body is the key.
      ...(index % 2 === 0 && { key: `reservation-${index}` }),
    });
    accepted.push({ id, user, amount });
  }

  async function sendLoop(signal: AbortSignal): Promise<void> {
    const sent: Promise<void>[] = [];
    const answeredBefore = accepted.length;
    try {
      for await (const _ of ticks(1_000 / perSecond, undefined, { signal })) {
        if (answeredBefore + sent.length - accepted.length < inFlightMax) sent.push(handleLater(reserve(n++)));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    await Promise.all(sent);
  }

  return {
    /** All accepted reservations. */
    accepted: accepted as readonly Reservation[],
    start() {
      if (running) return;
      const stopping = new AbortController();
      running = { stopping, ended: handleLater(sendLoop(stopping.signal)) };
    },
    /** Stops sending; resolves when every request is answered, and rejects if one was rejected or never answered. */
    async stop() {
      running?.stopping.abort();
      await running?.ended;
      running = undefined;
    },
  };
}

/** Marks a rejection as handled: the caller awaits the promise later. */
function handleLater(work: Promise<void>): Promise<void> {
  work.catch(() => {});
  return work;
}
