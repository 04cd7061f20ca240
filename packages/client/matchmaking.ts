/** Joining a queue and waiting for the match, as one call. */
import type { Call } from "./call.ts";
import { OutcomeUnknown } from "./errors.ts";
import type { JoinQueueRequest, QueuedTicket, Ticket } from "./gen/schemas.ts";
import type { CallOptions, CommandOptions } from "./options.ts";
import { pause } from "./pause.ts";

/** The operations that `join` uses. */
interface Tickets {
  joinQueue(params: { mode: string } & JoinQueueRequest, options?: CommandOptions): Call<QueuedTicket>;
  getTicket(params: { ticket_id: string }, options?: CallOptions): Call<Ticket>;
  heartbeatTicket(params: { ticket_id: string }, options?: CallOptions): Call<Ticket>;
}

/** The ticket ended without a match. */
export class TicketEnded extends Error {
  override readonly name = "TicketEnded";
  readonly ticket: Ticket;

  constructor(ticket: Ticket) {
    super(`The ticket ${ticket.ticket_id} is ${ticket.status}${ticket.reason ? ` (${ticket.reason})` : ""}.`);
    this.ticket = ticket;
  }
}

export interface Joined extends PromiseLike<QueuedTicket> {
  /** Waits until the ticket is matched, and keeps it alive until then. Throws TicketEnded if it ends otherwise. */
  matched(options?: Pick<CallOptions, "signal">): Promise<Ticket>;
}

export type Join = (mode: string, request?: JoinQueueRequest, options?: CommandOptions) => Joined;

// Short enough for a player who waits. A mode with heartbeats needs one every ten seconds or more.
const pollMs = 1_000;
const pollsPerHeartbeat = 3;

export function joinWith(tickets: Tickets): Join {
  return (mode, request = {}, options = {}) => {
    const joined = tickets.joinQueue({ ...request, mode }, options);
    return {
      // biome-ignore lint/suspicious/noThenProperty: `await` uses it.
      then: (onData, onError) => joined.then(onData, onError),
      matched: async ({ signal } = {}) => {
        const { ticket_id } = await joined;
        for (let [polls, wantsHeartbeats] = [0, false]; ; polls++) {
          if (wantsHeartbeats && polls % pollsPerHeartbeat === 0)
            await tickets.heartbeatTicket({ ticket_id }, { signal }).catch(ignoreLost);
          const ticket = await tickets.getTicket({ ticket_id }, { signal });
          if (ticket.status === "MATCHED") return ticket;
          if (ticket.status !== "QUEUED") throw new TicketEnded(ticket);
          wantsHeartbeats = ticket.heartbeat_before !== undefined;
          await pause(pollMs, signal);
        }
      },
    };
  };
}

/** A lost heartbeat does no harm: the next one follows soon. */
function ignoreLost(error: unknown): void {
  if (!(error instanceof OutcomeUnknown)) throw error;
}
