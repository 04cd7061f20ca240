/** Asks all services for their digests of what the console shows, and puts them together by topic. */
import { changeIdsMax, type Topics } from "@todoke/service";
import type { Deps } from "../deps.ts";
import type { Upstream } from "../upstreams/index.ts";
import { deployedServices, ownName } from "./ask-services.ts";

export interface WatchedTopics {
  readonly ids: readonly string[];
  /** Whose role lets them see matchmaking; undefined if no window does. */
  readonly matchmakingFor: Parameters<Upstream["call"]>[0]["user"];
}

export type ReadTopics = (watched: WatchedTopics) => Promise<Map<string, string>>;

type Part = readonly [service: string, topics: Topics];

export function topicsReader(
  { upstreams }: Pick<Deps, "upstreams">,
  own: (ids: readonly string[]) => Promise<Topics>,
): ReadTopics {
  const services = deployedServices(upstreams);

  async function ask(ids: readonly string[]): Promise<readonly Part[]> {
    const path = `/v1/admin/changes?ids=${encodeURIComponent(JSON.stringify(ids))}`;
    const call = async (upstream: Upstream) => {
      const { value } = await upstream.call({ method: "GET", path });
      return (value as { readonly topics?: Topics }).topics ?? {};
    };
    const asked = services.map(([name, upstream]) => partOf(name, ids, () => call(upstream)));
    return Promise.all([...asked, partOf(ownName, ids, () => own(ids))]);
  }

  return async ({ ids, matchmakingFor }) => {
    const parts: Part[] = [];
    // One call after the other, so that many windows make a pass longer, and not the load higher.
    for (let from = 0; from === 0 || from < ids.length; from += changeIdsMax)
      parts.push(...(await ask(ids.slice(from, from + changeIdsMax))));
    if (matchmakingFor && upstreams.matchmaking)
      parts.push(["matchmaking", { matchmaking: await readQueues(upstreams.matchmaking, matchmakingFor) }]);
    return merge(parts);
  };
}

/** A service that does not answer differs from itself when it does, so that pages read again then. */
async function partOf(name: string, ids: readonly string[], read: () => Promise<Topics>): Promise<Part> {
  const unknown = () => ["overview", ...ids.map((id) => `id:${id}`)].map((topic) => [topic, "no answer"]);
  return [name, await read().catch(() => Object.fromEntries(unknown()))];
}

function merge(parts: readonly Part[]): Map<string, string> {
  const merged = new Map<string, string>();
  for (const [service, topics] of parts)
    for (const [topic, digest] of Object.entries(topics))
      if (!merged.get(topic)?.includes(` ${service}=`))
        merged.set(topic, `${merged.get(topic) ?? ""} ${service}=${digest}`);
  return merged;
}

interface QueueFigures {
  readonly waiting: number;
  readonly time_to_match_seconds?: object;
}

/** Without the wait of the oldest ticket, which changes all the time. */
async function readQueues(matchmaking: Upstream, user: WatchedTopics["matchmakingFor"]): Promise<string> {
  const path = "/v1/matchmaking/queues";
  const get = async (at: string) => (await matchmaking.call({ method: "GET", path: at, ...(user && { user }) })).value;
  try {
    const { queues } = (await get(path)) as { readonly queues: readonly { readonly mode: string }[] };
    const figures = queues.map(async ({ mode }) => {
      const { waiting, time_to_match_seconds: time } = (await get(
        `${path}/${encodeURIComponent(mode)}/stats`,
      )) as QueueFigures;
      return [mode, waiting, time];
    });
    return JSON.stringify(await Promise.all(figures));
  } catch {
    return "no answer";
  }
}
