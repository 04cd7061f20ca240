/**
 * Players who join, look, are heard of, change their minds and join again, with a history of all that they were told.
 *
 * They call one process after the other. Whoever was not answered, or was told "later", asks again; a join then goes with
 * the same key, so that one wish is one ticket. When they go home they take back what still waits: then every ticket that
 * was given to somebody has an end which its player has heard of.
 */
import { randomInt, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "@todoke/kernel/testing";
import { tokenFor } from "./all-services.ts";

export type Status = "QUEUED" | "MATCHED" | "CANCELLED" | "EXPIRED";

/** An answer about a ticket. Times are milliseconds since 1970. */
export interface Told {
  readonly by: "join" | "look" | "beat" | "cancel";
  readonly user: string;
  readonly mode: string;
  readonly ticketId: string;
  readonly status: Status;
  readonly reason?: string;
  readonly matchId?: string;
  /** Whom the match is with. */
  readonly peers?: readonly string[];
  readonly askedAt: number;
  readonly answeredAt: number;
}

export interface Player {
  readonly user: string;
  readonly mode: string;
  /** Whether it says now and then that it is still there. */
  readonly beats: boolean;
  /** How often it looks. */
  readonly lookMs: number;
}

/** So many who play this mode and nothing else. Of two one is never heard of while it waits. */
export function playersOf(mode: string, { count, lookMs }: { count: number; lookMs: number }): readonly Player[] {
  return Array.from({ length: count }, (_, n) => ({ user: `${mode}-${n}`, mode, beats: n % 2 === 0, lookMs }));
}

export interface Playing {
  readonly told: readonly Told[];
  /** Calls that were not answered, or with "later". */
  readonly unheard: () => number;
  start(): void;
  /** Resolves when more have been matched, and more have changed their minds, than had before. */
  goesOn(): Promise<void>;
  /** Resolves when every ticket that somebody was given has come to its end, as its player was told. */
  goHome(): Promise<void>;
  /** Asks about a ticket now; nothing, if there is no answer. */
  ask(by: Exclude<Told["by"], "join">, ticket: Pick<Told, "user" | "ticketId">): Promise<Told | undefined>;
  /** The very call by which a ticket was had. What it gives is taken back. */
  joinAgain(ticketId: string): Promise<Told>;
}

interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  /** Of a join. */
  readonly key?: string;
}

interface Answer {
  readonly status: number;
  readonly body: {
    readonly ticket_id: string;
    readonly status: Status;
    readonly reason?: string;
    readonly match_id?: string;
    readonly peers?: readonly { readonly user_id: string }[];
    readonly code?: string;
  };
}

// More than a restart of Redis, or of a process, takes on a busy machine.
const triesMax = 1_000;
const answerMs = 5_000;

/** Calls, and what was heard. `urls` is asked at every call: processes come and go. */
function openCalls(urls: () => readonly string[]) {
  const told: Told[] = [];
  let [calls, unheard] = [0, 0];

  /** Nothing, if there was no answer, or none yet. */
  async function call(user: string, { method, path, key }: Call): Promise<Answer | undefined> {
    const all = urls();
    const token = await tokenFor("matchmaking", { userId: user, roles: ["USER"] });
    try {
      const answer = await fetch(`${all[calls++ % all.length]}/v1/matchmaking${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(key && { "idempotency-key": key, "content-type": "application/json" }),
        },
        ...(key && { body: JSON.stringify({ attributes: { skill: 100 } }) }),
        signal: AbortSignal.timeout(answerMs),
      });
      const body = (await answer.json()) as Answer["body"];
      // A machine that stalls may have sent the request too slowly.
      if (answer.status < 500 && answer.status !== 408) return { status: answer.status, body };
    } catch {
      // Cut off, too late, or nobody there.
    }
    unheard++;
    return undefined;
  }

  // By the clock that PostgreSQL and Redis go by too: times of theirs are compared with these.
  const now = () => Date.now();

  function note(about: Pick<Told, "by" | "user" | "ticketId" | "askedAt">, { status, body }: Answer): Told {
    const { by, ticketId } = about;
    const { reason, match_id: matchId, peers } = body;
    const isTooLate = by === "cancel" && status === 409 && body.code === "ticket-matched";
    if (status > 201 && !isTooLate) throw new Error(`${by} of ${ticketId}: ${status} ${JSON.stringify(body)}`);
    const is = {
      ...about,
      answeredAt: now() + 1, // It was within this millisecond.
      mode: ticketId.split(".")[0] ?? "",
      status: isTooLate ? "MATCHED" : body.status,
      ...(reason !== undefined && { reason }),
      ...(matchId !== undefined && { matchId }),
      ...(peers && { peers: peers.map(({ user_id }) => user_id) }),
    } as const;
    told.push(is);
    return is;
  }

  async function join({ user, mode }: Player, key: string): Promise<Told | undefined> {
    const askedAt = now();
    const answer = await call(user, { method: "POST", path: `/queues/${mode}/tickets`, key });
    // Its user's last ticket is just coming to its end.
    if (!answer || answer.body.code === "ticket-open") return undefined;
    return note({ by: "join", user, ticketId: answer.body.ticket_id, askedAt }, answer);
  }

  const ask: Playing["ask"] = async (by, { user, ticketId }) => {
    const askedAt = now();
    const method = ({ look: "GET", beat: "POST", cancel: "DELETE" } as const)[by];
    const answer = await call(user, { method, path: `/tickets/${ticketId}${by === "beat" ? ":heartbeat" : ""}` });
    // A look at a lost ticket settles nothing; a cancel does.
    if (by === "look" && answer?.body.code === "ticket-lost") return ask("cancel", { user, ticketId });
    return answer && note({ by, user, ticketId, askedAt }, answer);
  };

  return { told, unheard: () => unheard, join, ask };
}

/** Asks until it is told, as often as the player looks. */
async function untilTold({ user, lookMs }: Player, tryOnce: (n: number) => Promise<Told | undefined>): Promise<Told> {
  for (let n = 0; n < triesMax; n++) {
    const answer = await tryOnce(n);
    if (answer) return answer;
    await pause(lookMs);
  }
  throw new Error(`${user} was not told in ${triesMax} tries`);
}

/** `urls` is asked at every call: processes come and go. */
export function openPlaying(players: readonly Player[], urls: () => readonly string[]): Playing {
  const { told, unheard, join, ask } = openCalls(urls);
  /** By the tickets that were had by them. */
  const keys = new Map<string, string>();
  let isOpen = false;
  let playing: Promise<unknown> = Promise.resolve();

  async function joinBy(player: Player, key: string): Promise<Told> {
    const joined = await untilTold(player, () => join(player, key));
    keys.set(joined.ticketId, key);
    return joined;
  }

  /** Looks on until it is over; some change their minds. */
  async function follow(player: Player, ticketId: string): Promise<void> {
    const { user, beats } = player;
    const patience = randomInt(3) === 0 ? randomInt(4) : triesMax;
    await untilTold(player, async (n) => {
      const by = !isOpen || n >= patience ? "cancel" : beats && n % 4 === 3 ? "beat" : "look";
      const is = await ask(by, { user, ticketId });
      return is && is.status !== "QUEUED" ? is : undefined;
    });
  }

  async function play(player: Player): Promise<void> {
    while (isOpen) {
      // Some press the button twice: two wishes at once, each with a key of its own, are one ticket while it waits.
      const wishes = Array.from({ length: randomInt(5) === 0 ? 2 : 1 }, () => randomUUID());
      const joined = await Promise.all(wishes.map((key) => joinBy(player, key)));
      await Promise.all([...new Set(joined.map(({ ticketId }) => ticketId))].map((id) => follow(player, id)));
    }
  }

  return {
    told,
    unheard,
    start() {
      isOpen = true;
      playing = Promise.all(players.map(play));
      playing.catch(() => {}); // `goHome` tells of it.
    },
    async goesOn() {
      const count = (status: Status) => told.filter((each) => each.status === status).length;
      const [matched, cancelled] = [count("MATCHED"), count("CANCELLED")];
      const isGoing = () => count("MATCHED") >= matched + 20 && count("CANCELLED") >= cancelled + 3;
      await until("players play", isGoing);
    },
    async goHome() {
      isOpen = false;
      await playing;
    },
    ask,
    async joinAgain(ticketId) {
      const player = players.find(({ user }) => user === told.find((each) => each.ticketId === ticketId)?.user);
      const key = keys.get(ticketId);
      if (!player || !key) throw new Error(`nobody was given ticket ${ticketId}`);
      const joined = await joinBy(player, key);
      await follow(player, joined.ticketId);
      return joined;
    },
  };
}
