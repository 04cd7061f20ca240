/**
 * Reservations as a shop books them, at a steady pace: some long due, some for a moment later, with a key of the caller's or
 * without; and now and then one for a user who cannot have more, which must fail, and take nobody else with it.
 */
import { setInterval as ticks } from "node:timers/promises";
import type { PointsClient } from "./points-client.ts";

/** Who has as many points as can be counted. */
export const fullUser = "u_full";
const fullPoints = "9223372036854775807";
/** How every reservation of a user must end. */
export const endOf = (user: string) => (user === fullUser ? "FAILED" : "DONE");

export interface Booked {
  readonly id: string;
  readonly user: string;
  readonly amount: number;
}

const perSecond = 30;
/** On a busy machine no more are sent than are answered. */
const underWayMax = 60;
const users = 10;
const dueInMs = [-3_600_000, 0, 150, 500];

/** Has to be called once, before the first booking. */
export const fill = (client: PointsClient) =>
  client.told({
    method: "PUT",
    path: "/point/add",
    body: { user_id: fullUser, point_amount: fullPoints },
    key: "full",
  });

export function openBooking(client: PointsClient) {
  const booked: Booked[] = [];
  let n = 0;
  let running: { readonly stopping: AbortController; readonly ended: Promise<void> } | undefined;

  async function book(place: number): Promise<void> {
    const user = place % 12 === 11 ? fullUser : `u_${place % users}`;
    const amount = 1 + (place % 7);
    const executeAt = new Date(Date.now() + (dueInMs[place % dueInMs.length] ?? 0)).toISOString();
    const { id } = await client.told<{ id: string }>({
      method: "POST",
      path: place % 3 === 0 ? "/v1/points/reservations" : "/point/reserve",
      body: { user_id: user, point_amount: amount, execute_at: executeAt, reason: `booking ${place}` },
      // Without one, the body is the key.
      ...(place % 2 === 0 && { key: `booking-${place}` }),
    });
    booked.push({ id, user, amount });
  }

  async function keepBooking(signal: AbortSignal): Promise<void> {
    const sent: Promise<void>[] = [];
    const answeredBefore = booked.length;
    try {
      for await (const _ of ticks(1_000 / perSecond, undefined, { signal })) {
        if (answeredBefore + sent.length - booked.length < underWayMax) sent.push(noted(book(n++)));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    await Promise.all(sent);
  }

  return {
    /** All that was answered, from the first on. */
    booked: booked as readonly Booked[],
    start() {
      if (running) return;
      const stopping = new AbortController();
      running = { stopping, ended: noted(keepBooking(stopping.signal)) };
    },
    /** Sends no more, and resolves when all that was sent is answered; rejects if one was refused, or never answered. */
    async stop() {
      running?.stopping.abort();
      await running?.ended;
      running = undefined;
    },
  };
}

/** Whoever awaits it hears of its failure; until then nobody is to stumble over it. */
function noted(work: Promise<void>): Promise<void> {
  work.catch(() => {});
  return work;
}
