/**
 * Players who join, poll, send heartbeats, cancel and join again, with a history of all responses.
 *
 * They call the processes in turn and repeat a call without a response or with a 5xx; a join keeps its key, so that it creates
 * one ticket. When they stop they cancel queued tickets: then every ticket has an end that its player has seen.
 */
import { randomInt, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "@todoke/kernel/testing";
import { tokenFor } from "./signing.ts";

export type Status = "QUEUED" | "MATCHED" | "CANCELLED" | "EXPIRED";

/** An response context a ticket. Times are milliseconds since 1970. */
export interface TicketResponse {
  readonly by: "join" | "get" | "heartbeat" | "cancel";
  readonly user: string;
  readonly mode: string;
  readonly ticketId: string;
  readonly status: Status;
  readonly reason?: string;
  readonly matchId?: string;
  /** User ids of the opponents. */
  readonly peers?: readonly string[];
  readonly sentAt: number;
  readonly receivedAt: number;
}

export interface Player {
  readonly user: string;
  readonly mode: string;
  readonly sendsHeartbeats: boolean;
  readonly pollMs: number;
}

/** Creates players of one mode; every second one sends heartbeats. */
export function createPlayers(mode: string, { count, pollMs }: { count: number; pollMs: number }): readonly Player[] {
  return Array.from({ length: count }, (_, n) => ({
    user: `${mode}-${n}`,
    mode,
    sendsHeartbeats: n % 2 === 0,
    pollMs,
  }));
}

export interface PlayerLoad {
  readonly responses: readonly TicketResponse[];
  /** Number of calls without a response, or with a 5xx. */
  readonly unansweredCalls: () => number;
  start(): void;
  /** Resolves after 20 more MATCHED and 3 more CANCELLED responses. */
  waitForProgress(): Promise<void>;
  /** Resolves when every ticket has ended and its player has seen the end. */
  stop(): Promise<void>;
  /** Calls once about a ticket; returns undefined without a response. */
  call(
    by: Exclude<TicketResponse["by"], "join">,
    ticket: Pick<TicketResponse, "user" | "ticketId">,
  ): Promise<TicketResponse | undefined>;
  /** Repeats the join that created a ticket, then cancels or follows the new one. */
  repeatJoin(ticketId: string): Promise<TicketResponse>;
}

interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  /** Idempotency key of a join. */
  readonly key?: string;
}

interface HttpResponse {
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

// Long enough for a restart of Redis or of a process on a busy machine.
const attemptsMax = 1_000;
const responseMsMax = 5_000;

/** Sends calls and records responses. `urls` is called every time, because processes come and go. */
function openCalls(urls: () => readonly string[]) {
  const responses: TicketResponse[] = [];
  let [calls, unansweredCalls] = [0, 0];

  /** Returns undefined without a response, or with a 408 or 5xx. */
  async function sendHttp(user: string, { method, path, key }: Call): Promise<HttpResponse | undefined> {
    const all = urls();
    const token = await tokenFor("matchmaking", { userId: user, roles: ["USER"] });
    try {
      const response = await fetch(`${all[calls++ % all.length]}/v1/matchmaking${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(key && { "idempotency-key": key, "content-type": "application/json" }),
        },
        ...(key && { body: JSON.stringify({ attributes: { skill: 100 } }) }),
        signal: AbortSignal.timeout(responseMsMax),
      });
      const body = (await response.json()) as HttpResponse["body"];
      // 408: a slow machine sent the request too slowly.
      if (response.status < 500 && response.status !== 408) return { status: response.status, body };
    } catch {
      // Connection lost, timeout, or no process.
    }
    unansweredCalls++;
    return undefined;
  }

  // The clock of PostgreSQL and Redis on the same machine: their times are compared with these.
  const now = () => Date.now();

  function record(
    context: Pick<TicketResponse, "by" | "user" | "ticketId" | "sentAt">,
    { status, body }: HttpResponse,
  ): TicketResponse {
    const { by, ticketId } = context;
    const { reason, match_id: matchId, peers } = body;
    const isTooLate = by === "cancel" && status === 409 && body.code === "ticket-matched";
    if (status > 201 && !isTooLate) throw new Error(`${by} of ${ticketId}: ${status} ${JSON.stringify(body)}`);
    const entry = {
      ...context,
      receivedAt: now() + 1, // Rounded up.
      mode: ticketId.split(".")[0] ?? "",
      status: isTooLate ? "MATCHED" : body.status,
      ...(reason !== undefined && { reason }),
      ...(matchId !== undefined && { matchId }),
      ...(peers && { peers: peers.map(({ user_id }) => user_id) }),
    } as const;
    responses.push(entry);
    return entry;
  }

  async function join({ user, mode }: Player, key: string): Promise<TicketResponse | undefined> {
    const sentAt = now();
    const response = await sendHttp(user, { method: "POST", path: `/queues/${mode}/tickets`, key });
    // The user's previous ticket is just ending.
    if (!response || response.body.code === "ticket-open") return undefined;
    return record({ by: "join", user, ticketId: response.body.ticket_id, sentAt }, response);
  }

  const call: PlayerLoad["call"] = async (by, { user, ticketId }) => {
    const sentAt = now();
    const method = ({ get: "GET", heartbeat: "POST", cancel: "DELETE" } as const)[by];
    const response = await sendHttp(user, {
      method,
      path: `/tickets/${ticketId}${by === "heartbeat" ? ":heartbeat" : ""}`,
    });
    // A GET does not end a lost ticket; a cancel does.
    if (by === "get" && response?.body.code === "ticket-lost") return call("cancel", { user, ticketId });
    return response && record({ by, user, ticketId, sentAt }, response);
  };

  return { responses, unansweredCalls: () => unansweredCalls, join, call };
}

/** Repeats until there is a result, every `pollMs`. */
async function retryUntilDefined(
  { user, pollMs }: Player,
  attempt: (n: number) => Promise<TicketResponse | undefined>,
): Promise<TicketResponse> {
  for (let n = 0; n < attemptsMax; n++) {
    const response = await attempt(n);
    if (response) return response;
    await pause(pollMs);
  }
  throw new Error(`${user} got no result in ${attemptsMax} attempts`);
}

export function openPlayerLoad(players: readonly Player[], urls: () => readonly string[]): PlayerLoad {
  const { responses, unansweredCalls, join, call } = openCalls(urls);
  /** Idempotency keys by ticket. */
  const keys = new Map<string, string>();
  let isRunning = false;
  let running: Promise<unknown> = Promise.resolve();

  async function joinWithKey(player: Player, key: string): Promise<TicketResponse> {
    const joined = await retryUntilDefined(player, () => join(player, key));
    keys.set(joined.ticketId, key);
    return joined;
  }

  /** Polls until the ticket ends; a third of the players cancel early. */
  async function follow(player: Player, ticketId: string): Promise<void> {
    const { user, sendsHeartbeats } = player;
    const cancelAfter = randomInt(3) === 0 ? randomInt(4) : attemptsMax;
    await retryUntilDefined(player, async (n) => {
      const by = !isRunning || n >= cancelAfter ? "cancel" : sendsHeartbeats && n % 4 === 3 ? "heartbeat" : "get";
      const entry = await call(by, { user, ticketId });
      return entry && entry.status !== "QUEUED" ? entry : undefined;
    });
  }

  async function play(player: Player): Promise<void> {
    while (isRunning) {
      // Some players join twice at once, each time with a new key: both get the same ticket.
      const keys = Array.from({ length: randomInt(5) === 0 ? 2 : 1 }, () => randomUUID());
      const joined = await Promise.all(keys.map((key) => joinWithKey(player, key)));
      await Promise.all([...new Set(joined.map(({ ticketId }) => ticketId))].map((id) => follow(player, id)));
    }
  }

  return {
    responses,
    unansweredCalls,
    start() {
      isRunning = true;
      running = Promise.all(players.map(play));
      running.catch(() => {}); // `stop` rejects with it.
    },
    async waitForProgress() {
      const count = (status: Status) => responses.filter((each) => each.status === status).length;
      const [matched, cancelled] = [count("MATCHED"), count("CANCELLED")];
      const hasProgress = () => count("MATCHED") >= matched + 20 && count("CANCELLED") >= cancelled + 3;
      await until("players make progress", hasProgress);
    },
    async stop() {
      isRunning = false;
      await running;
    },
    call,
    async repeatJoin(ticketId) {
      const player = players.find(({ user }) => user === responses.find((each) => each.ticketId === ticketId)?.user);
      const key = keys.get(ticketId);
      if (!player || !key) throw new Error(`no player has ticket ${ticketId}`);
      const joined = await joinWithKey(player, key);
      await follow(player, joined.ticketId);
      return joined;
    },
  };
}
