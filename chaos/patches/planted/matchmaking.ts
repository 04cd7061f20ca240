/** Defects of matchmaking, in both queues. */
import { deadly, type Planted } from "./defect.ts";

const services = ["matchmaking"];

export const matchmakingDefects: readonly Planted[] = [
  {
    name: "event-of-the-first-match",
    what: "Only the first match of a batch gets an event.",
    caughtBy: ["match-announced-once", "audit-is-clean"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/matchmaking/queue/record-ends.ts",
        find: "...newEnds.flatMap(toEvents)",
        replace: "...newEnds.slice(0, 1).flatMap(toEvents)",
      },
    ],
  },
  {
    name: "cancel-in-background",
    what: "A cancel is answered at once and runs afterwards: the ticket may be matched before.",
    caughtBy: ["ticket-responses-agree"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/matchmaking/commands/cancel-ticket.ts",
        find: "import { endedTicketView, type TicketView }",
        replace: "import { endedTicketView, openTicketView, type TicketView }",
      },
      {
        file: "services/matchmaking/commands/cancel-ticket.ts",
        find: "const status = end?.status ?? (await deps.queue.cancel(own.ticketId));",
        replace: `if (!end) {
      const ticket = await deps.queue.find(own.ticketId);
      setTimeout(() => void deps.queue.cancel(own.ticketId).catch(() => {}), 300);
      if (ticket) return { ...openTicketView(ticket.ticket, undefined), status: "CANCELLED" };
    }
    const status = end?.status ?? (await deps.queue.cancel(own.ticketId));`,
      },
    ],
  },
  {
    name: "announced-to-one",
    what: "The event of a match names its first player only.",
    caughtBy: ["match-announced-once"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/matchmaking/events/matchmaking-events.ts",
        find: "const players = seats.map(",
        replace: "const players = seats.slice(0, 1).map(",
      },
    ],
  },
  {
    name: "both-on-one-team",
    what: "The seats of a match count teams from the wrong index: both players are on team 1.",
    caughtBy: ["match-of-two-teams"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/matchmaking/queue/postgres/matching.ts",
        find: "({ ticket, team: index + 1 })",
        replace: "({ ticket, team: 1 + index * 0 })",
      },
    ],
  },
  {
    name: "ack-before-record",
    what: "With Redis, ends are acked before they are recorded: after a crash between the two, a match is lost.",
    caughtBy: ["ticket-has-an-end"],
    broughtOutBy: { services, bus: "nats", given: [deadly("planted.gap", 5)] },
    patches: [
      {
        file: "services/matchmaking/queue/redis/record-entries.ts",
        find: "const recorded = await recordAll(options, { mode, entries });",
        replace: `const early = entries.map((entry) => toAck(entry, { kind: "recorded" }));
  await link.run(ackEnds, { keys: keysFor(keyPrefix, mode), arguments: [JSON.stringify(early)] });
  await reach("planted.gap");
  const recorded = await recordAll(options, { mode, entries });`,
      },
    ],
  },
];
