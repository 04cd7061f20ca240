/**
 * Loads the parts of a profile concurrently, within one timeout. A part that failed says why, and the others are served;
 * while entitlement is down, its last response is served as stale. Responses of services are embedded byte for byte, because
 * parsing would round large numbers. Only the services of the selected parts are called, each path once.
 */
import { Problem } from "@todoke/kernel/problem";
import type { Deps } from "../deps.ts";
import type { Language } from "../language/accept-language.ts";
import { translate } from "../language/problem-texts.ts";
import { profileUnavailable, type UpstreamName } from "../problems.ts";
import { countProfilePart } from "../telemetry.ts";
import type { Call, UpstreamResponse } from "../upstreams/index.ts";
import { staleCache } from "../upstreams/stale-cache.ts";
import { inboxInLanguage } from "../user-inbox/frames.ts";
import { type PartName, type PartSource, type ProfileSubject, type Selection, sources } from "./parts.ts";
import { pickFields } from "./pick-fields.ts";

export interface ProfileQuery extends ProfileSubject {
  readonly user: NonNullable<Call["user"]>;
  readonly requestId: string;
  readonly language: Language;
  readonly selection: Selection;
}

type Part =
  /** `body` is JSON. */
  | { readonly status: "ok" | "stale"; readonly body: string; readonly asOf: string }
  | { readonly status: "failed"; readonly code: string; readonly detail: string }
  | { readonly status: "absent" };

type Read = Pick<Call, "path" | "user" | "sharedAs">;

interface PartContext {
  readonly query: ProfileQuery;
  readonly get: (upstream: UpstreamName, read: Read) => Promise<UpstreamResponse>;
}

/** Returns the parts by name, as JSON objects, and the codes of those that failed. */
export function profileLoader({ upstreams, profileTimeoutMs }: Pick<Deps, "upstreams" | "profileTimeoutMs">) {
  const lastEntitlements = staleCache();

  /** Requests each path once, however many parts need it. */
  function createContext(query: ProfileQuery): PartContext {
    const deadlineMs = performance.now() + profileTimeoutMs;
    const calls = new Map<string, Promise<UpstreamResponse>>();
    const call = async (upstream: UpstreamName, read: Read) => {
      const service = upstreams[upstream];
      if (!service) throw new Error(`${upstream} is not deployed`);
      const timeoutMs = Math.max(1, deadlineMs - performance.now());
      return service.call({ ...read, method: "GET", requestId: query.requestId, timeoutMs });
    };
    const get: PartContext["get"] = (upstream, read) =>
      calls.getOrInsertComputed(`${upstream} ${read.path}`, () => call(upstream, read));
    return { query, get };
  }

  async function loadPart(name: PartName, context: PartContext): Promise<Part> {
    const { query, get } = context;
    const { upstream, path, sharedAs }: PartSource = sources[name];
    if (!upstreams[upstream]) return { status: "absent" };
    try {
      const shared = sharedAs?.(query);
      const own = { path: path(query), user: query.user };
      const response = await get(upstream, shared === undefined ? own : { ...own, sharedAs: shared });
      const body = await toBody(name, response, context);
      const part = { body, asOf: new Date().toISOString() };
      if (name === "entitlements") lastEntitlements.set(query.userId, part);
      return { status: "ok", ...part };
    } catch (error) {
      return toFailedPart(name, query, error);
    }
  }

  function toFailedPart(name: PartName, { userId, language }: ProfileQuery, error: unknown): Part {
    if (!(error instanceof Problem)) throw error;
    // Only a failure is bridged; a refusal is a valid response.
    const last = name === "entitlements" && error.status >= 500 ? lastEntitlements.get(userId) : undefined;
    if (last) return { status: "stale", body: last.body, asOf: last.asOf };
    const { code, detail } = translate(error.toJSON(), language);
    return { status: "failed", code, detail };
  }

  return async (query: ProfileQuery): Promise<{ readonly body: string; readonly failed: ReadonlySet<string> }> => {
    const { selection, userId } = query;
    const context = createContext(query);
    const parts = await Promise.all(
      [...selection.keys()].map(async (name) => ({ name, part: await loadPart(name, context) })),
    );
    for (const { name, part } of parts) countProfilePart(name, part.status);
    const failed = new Set(parts.flatMap(({ part }) => (part.status === "failed" ? [part.code] : [])));
    if (parts.every(({ part }) => part.status === "failed" || part.status === "absent")) throw unavailable(failed);
    const texts = parts.map(({ name, part }) => `${JSON.stringify(name)}:${formatPart(part, selection.get(name))}`);
    return { body: `{"user_id":${JSON.stringify(userId)},${texts.join(",")}}`, failed };
  };
}

/** A response without a body (204) becomes null. */
async function toBody(name: PartName, { body, value }: UpstreamResponse, context: PartContext): Promise<string> {
  if (name === "inbox") return JSON.stringify(inboxInLanguage(value, context.query.language));
  if (name === "players") return JSON.stringify(await namePlayers(value, context));
  return body || "null";
}

interface TicketWithPeers {
  readonly peers?: readonly { readonly user_id: string; readonly team: number; readonly party_size: number }[];
}

/**
 * The names of the other players of a match. Matchmaking shows a ticket to its owner only, so a player never learns the name of
 * a user outside their own matches.
 */
async function namePlayers(ticket: unknown, { get }: PartContext) {
  const { peers } = (ticket ?? {}) as TicketWithPeers;
  if (!peers?.length) return null;
  const ids = peers.map(({ user_id }) => encodeURIComponent(user_id)).join(",");
  const { value } = await get("account", { path: `/display-names?user_ids=${ids}` });
  const { users } = value as { users: readonly { user_id: string; display_name: string }[] };
  const names = new Map(users.map((user) => [user.user_id, user.display_name]));
  const withName = (peer: NonNullable<TicketWithPeers["peers"]>[number]) => {
    const name = names.get(peer.user_id);
    return { ...peer, ...(name !== undefined && { display_name: name }) };
  };
  return { players: peers.map(withName) };
}

function formatPart(part: Part, fields: ReadonlySet<string> | undefined): string {
  if (!("body" in part)) return JSON.stringify(part);
  const { status, body, asOf } = part;
  return `{"status":"${status}","value":${fields ? pickFields(body, fields) : body},"as_of":"${asOf}"}`;
}

const unavailable = (codes: ReadonlySet<string>): Problem =>
  profileUnavailable(`every part of the profile failed: ${[...codes].join(", ")}`, { retryAfterSeconds: 1 });
