/**
 * The queue in Redis. Every operation is one script (scripts.ts).
 *
 * Redis decides who is matched and who cancels; PostgreSQL decides which of these ends count. A client learns of an end only
 * after PostgreSQL has it. Redis may have lost an end (a restart from an old file, a lagging replica that takes over), so
 * PostgreSQL is asked before an open ticket blocks a join. A Redis that comes back empty has lost the waiting tickets and
 * nothing else; their users join again.
 */
import { hash, randomUUID, randomUUIDv7 } from "node:crypto";
import { digestJson, keyConflict } from "@todoke/kernel/idempotency";
import type { Script } from "@todoke/redis";
import { selectTicketEnd } from "../../store/ended-tickets.ts";
import { differentRequest } from "../different-request.ts";
import type { FoundTicket, JoinedTicket, Proposal, Snapshot, TicketQueue, TicketRequest } from "../index.ts";
import type { OpenTicket } from "../ticket.ts";
import { openTicketIds, parseMode, type TicketIds } from "../ticket-id.ts";
import { cancelForUsers } from "./cancel-for-users.ts";
import { keysFor } from "./prelude.ts";
import { defaultKeyPrefix, type RecordOptions, recordEntries } from "./record-entries.ts";
import * as scripts from "./scripts.ts";
import { formatRecord, parseEntry, parseRecord, type RawEntry } from "./ticket-record.ts";

export interface RedisQueueOptions extends RecordOptions {
  /** Called with errors that no caller awaits; the recorder repeats the work. */
  readonly onError: (error: unknown) => void;
  /** Called when a mode's stream has new ends: wakes the recorder. */
  readonly onEnded: (mode: string) => void;
  /** Without it, IDs do not prove who owns a ticket. */
  readonly ids?: Pick<TicketIds, "create">;
  /** How long an idempotency key is kept; a day by default. */
  readonly idempotencyMs?: number;
  /** With more unrecorded ends than this, no matches are made: PostgreSQL is unavailable. */
  readonly backlogMax?: number;
}

const dayMs = 24 * 60 * 60 * 1_000;
// Bounds of one script, which blocks Redis for about two milliseconds.
const matchesPerScriptMax = 50;
const sweptPerScriptMax = 100;
const deletedKeysPerScriptMax = 1_000;
// Scripts of one call of `sweep` or `matchFifo`; the next call continues.
const scriptsMax = 50;
// Each attempt finds data that Redis had lost before; more than a few mean that something else is wrong.
const attemptsMax = 5;

export function openRedisQueue(options: RedisQueueOptions): TicketQueue {
  const { link, db, keyPrefix = defaultKeyPrefix, onError, onEnded, backlogMax = 10_000 } = options;
  const { ids = openTicketIds([]), idempotencyMs = dayMs } = options;
  const holder = randomUUID();

  const run = (mode: string, script: Script, ...args: readonly (string | number)[]) =>
    link.run(script, { keys: keysFor(keyPrefix, mode), arguments: args.map(String) });
  const runForTicket = (ticketId: string, script: Script, ...args: readonly (string | number)[]) =>
    run(parseMode(ticketId) ?? "", script, ticketId, ...args);

  async function join(request: TicketRequest): Promise<JoinedTicket> {
    const { mode, userId } = request;
    let confirmed = "";
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const args = joinArguments({ ...request, idempotencyMs }, ids.create(mode, userId), confirmed);
      const [result, ...rest] = (await run(mode, scripts.join, ...args)) as JoinReply;
      if (result === "conflict") throw keyConflict();
      if (result !== "unconfirmed" && result !== "different") {
        const [kind, ticketId, expiresAt] = rest as ["new" | "open", string, number];
        return { kind, ticketId, expiresAt, replayed: result === "replayed" };
      }
      const [open] = rest as [string];
      if (await selectTicketEnd(db, open)) await run(mode, scripts.forgetTickets, open);
      else if (result === "different") throw differentRequest(open);
      else confirmed = open;
    }
    throw new Error(`a join of ${userId} in ${mode} found another open ticket in each of ${attemptsMax} attempts`);
  }

  async function cancel(ticketId: string): Promise<"CANCELLED" | "MATCHED" | "EXPIRED" | undefined> {
    const mode = parseMode(ticketId) ?? "";
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const reply = (await runForTicket(ticketId, scripts.cancelTicket)) as CancelReply;
      if (reply === null) return (await selectTicketEnd(db, ticketId))?.status;
      const [status, [raw]] = reply;
      const { result } = await record(mode, raw);
      if (result.kind !== "void") return status;
      const ended = result.ended.get(ticketId);
      if (ended) return ended;
    }
    throw new Error(`ticket ${ticketId} could not be ended in ${attemptsMax} attempts`);
  }

  /** Records one end at once, instead of leaving it to the recorder. */
  async function record(mode: string, raw: RawEntry) {
    try {
      const { recorded } = await recordEntries(options, { mode, entries: [parseEntry(mode, raw)] });
      const [only] = recorded;
      if (!only) throw new Error("an end was recorded without a result");
      return only;
    } catch (error) {
      onEnded(mode);
      throw error;
    }
  }

  async function snapshot(mode: string, ticketsMax: number): Promise<Snapshot> {
    const [now, ...found] = (await run(mode, scripts.snapshot, ticketsMax, Math.random())) as [number, ...string[]];
    const tickets: OpenTicket[] = [];
    const damaged: string[] = [];
    for (let index = 0; index < found.length; index += 2) {
      const [id = "", raw = ""] = found.slice(index, index + 2);
      const parsed = parseRecord(mode, raw);
      if ("why" in parsed) damaged.push(id, raw, parsed.why);
      else if (isWaiting(parsed, now)) tickets.push(parsed.ticket);
    }
    // The snapshot leaves damaged tickets out even if this fails.
    if (damaged.length > 0) {
      await run(mode, scripts.quarantine, ...damaged.slice(0, 3 * sweptPerScriptMax)).catch(onError);
      onEnded(mode);
    }
    return { tickets, now };
  }

  return {
    join,
    cancel,
    snapshot,
    cancelForUsers: cancelForUsers(options),

    async find(ticketId) {
      return toFoundTicket(parseMode(ticketId) ?? "", await runForTicket(ticketId, scripts.find));
    },

    async findOfUser({ userId, modes }) {
      const find = async (mode: string) => toFoundTicket(mode, await run(mode, scripts.findOfUser, userId));
      return (await Promise.all(modes.map(find))).filter((found) => found !== undefined);
    },

    async heartbeat(ticketId, heartbeatMs) {
      const raw = (await runForTicket(ticketId, scripts.heartbeat, heartbeatMs ?? "")) as string | null;
      const parsed = raw === null ? undefined : parseRecord(parseMode(ticketId) ?? "", raw);
      return parsed && "ticket" in parsed ? parsed.ticket : undefined;
    },

    async matchFifo(mode, { players, matchesMax, ...terms }) {
      let all = 0;
      for (let calls = 0; calls < scriptsMax && all < matchesMax; calls++) {
        const matchIds = Array.from({ length: Math.min(matchesPerScriptMax, matchesMax - all) }, () => randomUUIDv7());
        const args = [players, JSON.stringify(terms), backlogMax, ...matchIds];
        const [made, removed] = (await run(mode, scripts.matchFifo, ...args)) as [number, number];
        all += made;
        if (made || removed) onEnded(mode);
        if (removed === 0 && made < matchIds.length) break;
      }
      return { made: all };
    },

    async commitProposals(mode, proposals, terms) {
      let all = 0;
      for (let first = 0; first < proposals.length; first += matchesPerScriptMax) {
        const some = proposals.slice(first, first + matchesPerScriptMax).map(proposalArgument);
        all += Number(
          await run(mode, scripts.commitProposals, backlogMax, JSON.stringify(terms), JSON.stringify(some)),
        );
      }
      if (all > 0) onEnded(mode);
      return { made: all };
    },

    acquireFormingLease: async (mode, leaseMs) =>
      (await run(mode, scripts.acquireFormingLease, holder, Math.ceil(leaseMs))) === 1,

    async status(mode) {
      const [waiting, oldestMs] = (await run(mode, scripts.status)) as [number, number];
      return { waiting, ...(oldestMs >= 0 && { oldestMs }) };
    },

    async sweep(mode) {
      const all = { expired: 0, damaged: 0 };
      for (let calls = 1; ; calls++) {
        const reply = (await run(mode, scripts.sweep, sweptPerScriptMax, deletedKeysPerScriptMax)) as SweepReply;
        const [checked, expired, damaged, waiting, oldestMs, nextEndMs] = reply;
        all.expired += expired;
        all.damaged += damaged;
        if (expired + damaged > 0) onEnded(mode);
        if (checked === sweptPerScriptMax && calls < scriptsMax) continue;
        return { ...all, waiting, ...(oldestMs >= 0 && { oldestMs }), ...(nextEndMs >= 0 && { nextEndMs }) };
      }
    },

    // The caller owns the connection; the recorder uses it too.
    async [Symbol.asyncDispose]() {},
  };
}

type JoinReply = ["new" | "open" | "replayed" | "unconfirmed" | "different" | "conflict", ...(string | number)[]];
type CancelReply = readonly ["CANCELLED" | "MATCHED" | "EXPIRED", readonly [RawEntry]] | null;
type SweepReply = [number, number, number, number, number, number];

const isWaiting = ({ ticket, status }: FoundTicket, now: number) =>
  status === "QUEUED" && ticket.expiresAt > now && ticket.aliveUntil > now;

/** Parses the reply of the scripts `find` and `findOfUser`. */
function toFoundTicket(mode: string, reply: unknown): FoundTicket | undefined {
  const [raw, now] = reply as [string, number];
  const parsed = parseRecord(mode, raw);
  if ("why" in parsed) return undefined;
  return parsed.status === "QUEUED" && !isWaiting(parsed, now) ? { ...parsed, status: "EXPIRED" } : parsed;
}

/** In the order of the script's arguments. */
function joinArguments(
  request: TicketRequest & { readonly idempotencyMs: number },
  ticketId: string,
  confirmed: string,
): (string | number)[] {
  const { idempotencyMs, key, partySize, attributes, ticketMs, heartbeatMs } = request;
  return [
    hash("sha256", JSON.stringify([key.scope, key.key]), "base64url"),
    key.requestHash.toString("base64url"),
    ticketId,
    digestJson({ partySize, attributes }).toString("base64url"),
    formatRecord(request),
    Math.ceil(ticketMs),
    heartbeatMs === undefined ? "" : Math.ceil(heartbeatMs),
    idempotencyMs,
    confirmed,
  ];
}

const proposalArgument = ({ seats, region = "" }: Proposal) => ({
  match: randomUUIDv7(),
  region,
  seats: seats.map(({ ticketId, team }) => ({ id: ticketId, team })),
});
