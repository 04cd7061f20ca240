/**
 * Players of the gateway and an admin. Players log in at the provider, make requests with their sessions at any process, and log
 * out; the admin suspends and reinstates them. Each step is a line of the history.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { formatSigningKey, formatVerifyingKey, newSigningKey, toVerifyingKey } from "@todoke/http";
import { openBrowser } from "@todoke/identity/testing";
import type { Act, Line, Writer } from "../history.ts";
import type { Random } from "../random.ts";
import type { ServiceAddress } from "../request.ts";
import { requestTimeoutMs } from "../settings.ts";

const signingKey = newSigningKey("chaos");
export const tokenKey = formatSigningKey(signingKey);
export const verifyingKeys = formatVerifyingKey(toVerifyingKey("gateway-bff", signingKey));
export const gatewaySecret = randomBytes(32).toString("base64url");

export const adminName = "admin";
const playersMax = 8;
const passwordOf = (username: string) => `${username}-chaos`;

/** The users of the provider. */
export const providerUsers = [adminName, ...Array.from({ length: playersMax }, (_, n) => `player-${n + 1}`)].map(
  (username) => ({ username, password: passwordOf(username), name: username }),
);

export interface PlayersOptions {
  readonly random: Random;
  readonly history: Writer<Line>;
  /** The gateway, as browsers reach it. */
  readonly origin: string;
  /** Address of a serving process of the gateway; undefined while there is none. */
  readonly where: () => ServiceAddress | undefined;
  readonly stopping: AbortSignal;
}

interface Session {
  /** Its name in the history. */
  readonly name: string;
  readonly token: string;
}

/** All of them. Resolves when each has finished its step in progress. */
export async function runPlayers(options: PlayersOptions): Promise<void> {
  const live = new Map<string, Session>();
  const players = providerUsers.filter(({ username }) => username !== adminName).map(({ username }) => username);
  await Promise.all([
    ...players.map((player) => play({ ...options, random: options.random.for(player) }, player, live)),
    suspendPlayers({ ...options, random: options.random.for(adminName) }, players, live),
  ]);
}

/** Logs in, makes some requests, logs out, and tries the ended session again; until stopped. */
async function play(options: PlayersOptions, player: string, live: Map<string, Session>): Promise<void> {
  const { random, stopping } = options;
  // The first logins of an identity at once, as by several tabs, still make one user.
  await Promise.all([logIn(options, player), logIn(options, player), logIn(options, player)]);
  while (!stopping.aborted) {
    const session = await logIn(options, player);
    if (!session) {
      await sleep(200);
      continue;
    }
    live.set(player, session);
    for (let n = random.between(3, 12); n > 0 && !stopping.aborted; n--) {
      await sleep(random.between(10, 150));
      await request(options, { act: "request", player, session, path: random.pick(["/v1/me", "/v1/sessions"]) });
    }
    if (random.chance(0.3)) continue;
    const ended = await request(options, { act: "log out", player, session, method: "POST", path: "/logout" });
    if (ended.status !== 200) continue;
    for (let n = 0; n < 3; n++) await request(options, { act: "request", player, session, path: "/v1/sessions" });
  }
}

/** Suspends one player after the other, and tries each one's session at once. */
async function suspendPlayers(
  options: PlayersOptions,
  players: readonly string[],
  live: ReadonlyMap<string, Session>,
): Promise<void> {
  const { random, stopping } = options;
  let admin: Session | undefined;
  const unclear = new Set<string>();
  for (let n = 1; !stopping.aborted; n++) {
    await sleep(random.between(100, 400));
    const player = random.pick(players);
    const session = live.get(player);
    admin ??= await logIn(options, adminName);
    if (!admin || !session || unclear.has(player)) continue;
    const userId = await userIdOf(options, player, session);
    if (userId === undefined) continue;
    const act = (what: "suspend" | "reinstate") =>
      untilAnswered(options, {
        act: what,
        player,
        session: admin as Session,
        method: "POST",
        path: `/v1/admin/users/${userId}:${what}`,
        key: `${what}-${options.random.between(0, 2 ** 32)}-${n}`,
        body: { reason: "chaos" },
      });
    const suspended = await act("suspend");
    if (suspended.status === 401) admin = undefined;
    if (suspended.status === 200)
      for (let tries = 0; tries < 4; tries++)
        await request(options, { act: "request", player, session, path: "/v1/sessions" });
    else if (suspended.status === undefined) unclear.add(player);
    if (suspended.status === 200 && (await act("reinstate")).status !== 200) unclear.add(player);
  }
}

async function userIdOf(options: PlayersOptions, player: string, session: Session): Promise<string | undefined> {
  const { status, text } = await request(options, { act: "request", player, session, path: "/v1/me" });
  return status === 200 ? JSON.parse(text).user_id : undefined;
}

/** Logs in through the provider's form. Returns undefined if a step fails. */
async function logIn({ origin, history }: PlayersOptions, player: string): Promise<Session | undefined> {
  const from = Date.now();
  try {
    const browser = openBrowser();
    const form = await browser.visit((await browser.visit(`${origin}login`)).url);
    const [, action = ""] = /<form[^>]* action="([^"]+)"/.exec(form.text) ?? [];
    const formUrl = new URL(action.replaceAll("&amp;", "&"), form.url);
    const back = await browser.visit(formUrl, { username: player, password: passwordOf(player) });
    const landed = await browser.visit(back.url);
    const [, token] = /todoke=(tds_[\w-]{43})/.exec(landed.headers.getSetCookie().join()) ?? [];
    const session = token === undefined ? undefined : { token, name: token.slice(-8) };
    history.write({ act: "log in", player, from, to: Date.now(), via: "", status: landed.status, ...named(session) });
    return session;
  } catch {
    history.write({ act: "log in", player, from, to: Date.now(), via: "" });
    return undefined;
  }
}

const named = (session: Session | undefined) => (session ? { session: session.name } : {});

interface Step extends Pick<Act, "act" | "player"> {
  readonly session: Session;
  readonly method?: string;
  readonly path: string;
  readonly key?: string;
  readonly body?: object;
}

interface Outcome {
  readonly status?: number;
  readonly text: string;
}

/** Repeats a step with the same key until its outcome is definite. */
async function untilAnswered(options: PlayersOptions, step: Step): Promise<Outcome> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const outcome = await request(options, step);
    const isDefinite = outcome.status !== undefined && outcome.status < 500 && ![409, 429].includes(outcome.status);
    if (isDefinite) return outcome;
    if (performance.now() > deadline) return { text: "" };
    await sleep(options.random.between(50, 300));
  }
}

async function request(options: PlayersOptions, { act, player, session, ...step }: Step): Promise<Outcome> {
  const address = options.where();
  const from = Date.now();
  const write = (more: Partial<Act>) =>
    options.history.write({
      act,
      player,
      session: session.name,
      path: step.path,
      via: address?.name ?? "",
      from,
      to: Date.now(),
      ...more,
    });
  if (!address) {
    await sleep(50);
    return { text: "" };
  }
  try {
    const response = await fetch(new URL(step.path, address.url), {
      method: step.method ?? "GET",
      headers: {
        authorization: `Bearer ${session.token}`,
        ...(step.key && { "idempotency-key": step.key }),
        ...(step.body && { "content-type": "application/json" }),
      },
      ...(step.body && { body: JSON.stringify(step.body) }),
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
    const text = await response.text();
    const isMe = step.path === "/v1/me" && response.status === 200;
    write({ status: response.status, ...(isMe && { userId: JSON.parse(text).user_id }) });
    return { status: response.status, text };
  } catch {
    write({});
    return { text: "" };
  }
}
