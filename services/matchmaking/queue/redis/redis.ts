/**
 * The queue in Redis, with the promises of the port. Whatever is done to it is one script (scripts.ts).
 *
 * Redis decides who is matched and who has cancelled; PostgreSQL decides what of it counts. Nothing is told to a client as
 * ended before PostgreSQL has it, and what Redis may have forgotten (a restart from an old file, a replica that takes over
 * and lags) is asked of PostgreSQL before it could be in anybody's way. A Redis that was emptied has lost the tickets that
 * waited and nothing else: the same call joins again.
 */
import { hash, randomUUID, randomUUIDv7 } from "node:crypto";
import { digestOf, idempotencyConflict } from "@todoke/kernel/idempotency";
import type { Script } from "@todoke/redis";
import { ticketOpen } from "../../problems.ts";
import { selectTicketEnd } from "../../store/ends.ts";
import { modeOf, openTicketIds, type TicketIds } from "../../ticket-id.ts";
import type { OpenTicket } from "../../tickets.ts";
import type { Found, Joined, JoinWish, Proposal, Snapshot, TicketQueue } from "../index.ts";
import { cancelAllOf } from "./cancel-all-of.ts";
import { entryOf, type RawEntry, readRecord, recordOf } from "./kept.ts";
import { defaultPlace, type RecordOptions, recordEntries } from "./record.ts";
import * as scripts from "./scripts.ts";
import { keysOf } from "./words.ts";

export interface RedisQueueOptions extends RecordOptions {
  /** Hears of what failed and needs nobody: the recorder will do it. */
  readonly onError: (error: unknown) => void;
  /** Hears that ends were written to a mode's stream: the recorder's wake-up. */
  readonly onEnded: (mode: string) => void;
  /** Without it, IDs prove nothing. */
  readonly ids?: Pick<TicketIds, "create">;
  /** So many ends may wait to be recorded; then no more matches are made: PostgreSQL is away. */
  readonly backlogMax?: number;
}

const dayMs = 24 * 60 * 60 * 1_000;
/** Made by one script, which holds everybody up while it runs: some two milliseconds. */
const matchesAtOnceMax = 50;
const sweptAtOnceMax = 100;
const keysForgottenAtOnceMax = 1_000;
/** One call of `sweep` ends so many rounds of tickets at the most, and one call of `matchInOrder` passes over so many. */
const roundsMax = 50;
/** Each try meets something that Redis did not know the time before; more than a few mean that something else is wrong. */
const triesMax = 5;

export function openRedisQueue(options: RedisQueueOptions): TicketQueue {
  const { link, db, place = defaultPlace, onError, onEnded, backlogMax = 10_000 } = options;
  const { ids = openTicketIds([]) } = options;
  const self = randomUUID();

  const ask = (mode: string, script: Script, ...args: readonly (string | number)[]) =>
    link.run(script, { keys: keysOf(place, mode), arguments: args.map(String) });
  const askAbout = (ticketId: string, script: Script, ...args: readonly (string | number)[]) =>
    ask(modeOf(ticketId) ?? "", script, ticketId, ...args);

  /** What the script says to a wish, and PostgreSQL about a ticket that is in its way. */
  async function join(wish: JoinWish): Promise<Joined> {
    let sure = "";
    for (let tries = 1; tries <= triesMax; tries++) {
      const words = joinWords(wish, ids.create(wish.mode, wish.userId), sure);
      const [said, ...rest] = (await ask(wish.mode, scripts.join, ...words)) as JoinAnswer;
      if (said === "conflict") throw conflict();
      if (said !== "open" && said !== "other") return joinedOf(said, rest);
      const [open = ""] = rest as string[];
      if (await selectTicketEnd(db, open)) await ask(wish.mode, scripts.forgetTickets, open);
      else if (said === "other") throw otherWish(open);
      else sure = open;
    }
    throw new Error(`the queue changed its mind about a wish of ${wish.userId} ${triesMax} times`);
  }

  async function cancel(ticketId: string): Promise<"CANCELLED" | "MATCHED" | "EXPIRED" | undefined> {
    const mode = modeOf(ticketId) ?? "";
    for (let tries = 1; tries <= triesMax; tries++) {
      const said = (await askAbout(ticketId, scripts.cancelTicket)) as CancelAnswer;
      if (said === null) return (await selectTicketEnd(db, ticketId))?.status;
      const [status, [raw]] = said;
      const { recorded } = await record(mode, raw);
      if (recorded.kind !== "void") return status;
      const ended = recorded.ended.get(ticketId);
      if (ended) return ended;
    }
    throw new Error(`ticket ${ticketId} could not be brought to an end in ${triesMax} tries`);
  }

  /** Does at once, and for one end, what the recorder would do. */
  async function record(mode: string, raw: RawEntry) {
    try {
      const { recorded } = await recordEntries(options, { mode, entries: [entryOf(mode, raw)] });
      const [only] = recorded;
      if (!only) throw new Error("an end was recorded and not answered");
      return only;
    } catch (error) {
      onEnded(mode);
      throw error;
    }
  }

  async function snapshot(mode: string, ticketsMax: number): Promise<Snapshot> {
    const [now, ...found] = (await ask(mode, scripts.snapshot, ticketsMax, Math.random())) as [number, ...string[]];
    const tickets: OpenTicket[] = [];
    const damaged: string[] = [];
    for (let place = 0; place < found.length; place += 2) {
      const [id = "", raw = ""] = found.slice(place, place + 2);
      const read = readRecord(mode, raw);
      if ("why" in read) damaged.push(id, raw, read.why);
      else if (isWaiting(read, now)) tickets.push(read.ticket);
    }
    // Whoever finds them first sets them aside; the snapshot does without them either way.
    if (damaged.length > 0) {
      await ask(mode, scripts.setAside, ...damaged.slice(0, 3 * sweptAtOnceMax)).catch(onError);
      onEnded(mode);
    }
    return { tickets, now };
  }

  return {
    join,
    cancel,
    snapshot,
    cancelAllOf: cancelAllOf(options),

    async find(ticketId) {
      const [raw, now] = (await askAbout(ticketId, scripts.find)) as [string, number];
      const read = readRecord(modeOf(ticketId) ?? "", raw);
      if ("why" in read) return undefined;
      return read.status === "QUEUED" && !isWaiting(read, now) ? { ...read, status: "EXPIRED" } : read;
    },

    async beat(ticketId, heartbeatMs) {
      const raw = (await askAbout(ticketId, scripts.beat, heartbeatMs ?? "")) as string | null;
      const read = raw === null ? undefined : readRecord(modeOf(ticketId) ?? "", raw);
      return read && "ticket" in read ? read.ticket : undefined;
    },

    async matchInOrder(mode, { players, matchesMax, ...terms }) {
      const said = JSON.stringify(terms);
      let all = 0;
      for (let rounds = 0; rounds < roundsMax && all < matchesMax; rounds++) {
        const ids = Array.from({ length: Math.min(matchesAtOnceMax, matchesMax - all) }, () => randomUUIDv7());
        const [made, over] = (await ask(mode, scripts.matchInOrder, players, said, backlogMax, ...ids)) as number[];
        all += made ?? 0;
        if (made || over) onEnded(mode);
        if (over === 0 && (made ?? 0) < ids.length) break;
      }
      return { made: all };
    },

    async settle(mode, proposals, terms) {
      let all = 0;
      for (let first = 0; first < proposals.length; first += matchesAtOnceMax) {
        const some = proposals.slice(first, first + matchesAtOnceMax).map(proposalWords);
        all += Number(await ask(mode, scripts.settle, backlogMax, JSON.stringify(terms), JSON.stringify(some)));
      }
      if (all > 0) onEnded(mode);
      return { made: all };
    },

    holdForming: async (mode, forMs) => (await ask(mode, scripts.hold, self, Math.ceil(forMs))) === 1,

    async standing(mode) {
      const [waiting, oldestMs] = (await ask(mode, scripts.standing)) as [number, number];
      return { waiting, ...(oldestMs >= 0 && { oldestMs }) };
    },

    async sweep(mode) {
      const all = { expired: 0, damaged: 0 };
      for (let rounds = 1; ; rounds++) {
        const answer = (await ask(mode, scripts.sweep, sweptAtOnceMax, keysForgottenAtOnceMax)) as SweepAnswer;
        const [lookedAt, expired, damaged, waiting, oldestMs, nextEndMs] = answer;
        all.expired += expired;
        all.damaged += damaged;
        if (expired + damaged > 0) onEnded(mode);
        if (lookedAt === sweptAtOnceMax && rounds < roundsMax) continue;
        return { ...all, waiting, ...(oldestMs >= 0 && { oldestMs }), ...(nextEndMs >= 0 && { nextEndMs }) };
      }
    },

    // The link is its owner's: the recorder has it too.
    async [Symbol.asyncDispose]() {},
  };
}

type JoinAnswer = ["new" | "kept" | "replayed" | "open" | "other" | "conflict", ...(string | number)[]];
type CancelAnswer = readonly ["CANCELLED" | "MATCHED" | "EXPIRED", readonly [RawEntry]] | null;
type SweepAnswer = [number, number, number, number, number, number];

const isWaiting = ({ ticket, status }: Found, now: number) =>
  status === "QUEUED" && ticket.expiresAt > now && ticket.aliveUntil > now;

/** In the order in which the script takes them. */
function joinWords(wish: JoinWish, ticketId: string, sure: string): (string | number)[] {
  const { key, partySize, attributes, ticketMs, heartbeatMs } = wish;
  return [
    hash("sha256", JSON.stringify([key.scope, key.key]), "base64url"),
    key.requestHash.toString("base64url"),
    ticketId,
    digestOf({ partySize, attributes }).toString("base64url"),
    recordOf(wish),
    Math.ceil(ticketMs),
    heartbeatMs === undefined ? "" : Math.ceil(heartbeatMs),
    dayMs,
    sure,
  ];
}

function joinedOf(said: "new" | "kept" | "replayed", rest: readonly (string | number)[]): Joined {
  const replayed = said === "replayed";
  const [ticketId = "", expiresAt] = replayed ? rest.slice(1) : rest;
  const kind = said === "new" || rest[0] === "new" ? "new" : "open";
  return { kind, ticketId: String(ticketId), expiresAt: Number(expiresAt), replayed };
}

const proposalWords = ({ seats, region = "" }: Proposal) => ({
  match: randomUUIDv7(),
  region,
  seats: seats.map(({ ticketId, team }) => ({ id: ticketId, team })),
});

const conflict = () =>
  idempotencyConflict("this Idempotency-Key was first sent with another wish; use a new key for a new ticket");

const otherWish = (open: string) =>
  ticketOpen(`ticket ${open} waits with another wish; cancel it to join with this one`);
