/** Joining a queue and waiting for the match, as one call. */
import type { Call } from "./call.ts";
import type { JoinQueueRequest, QueuedTicket, Ticket } from "./gen/schemas.ts";
import type { CallOptions, CommandOptions } from "./options.ts";
import { pause } from "./pause.ts";

/** The operations that it uses. */
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

// A match is shown within a second or two, and a heartbeat is due after ten or more.
const pollMs = 1_000;

export function joinWith(tickets: Tickets): Join {
  return (mode, request = {}, options = {}) => {
    const joined = tickets.joinQueue({ ...request, mode }, options);
    return {
      // biome-ignore lint/suspicious/noThenProperty: `await` uses it.
      then: (onData, onError) => joined.then(onData, onError),
      matched: async ({ signal } = {}) => {
        const { ticket_id } = await joined;
        for (let needsHeartbeat = false; ; ) {
          const ticket: Ticket = await (needsHeartbeat
            ? tickets.heartbeatTicket({ ticket_id }, { signal })
            : tickets.getTicket({ ticket_id }, { signal }));
          if (ticket.status === "MATCHED") return ticket;
          if (ticket.status !== "QUEUED") throw new TicketEnded(ticket);
          needsHeartbeat = ticket.heartbeat_before !== undefined;
          await pause(pollMs, signal);
        }
      },
    };
  };
}
