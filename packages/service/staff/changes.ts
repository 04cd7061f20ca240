/**
 * Whether something has changed that the console shows. Each topic has a digest of a few rows, all of them found by an index; a gateway
 * compares it with the last one, and tells its windows which topics differ (docs/adr/0159).
 */
import { hash } from "node:crypto";
import { named } from "@todoke/contracts/api";
import { type Authenticate, guarded, type HttpApp, problems } from "@todoke/http";
import type { Db, Queryable } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import type { FoundEntries, WhyQuestion } from "@todoke/kernel/why";
import { Type } from "typebox";
import type { Health } from "../health.ts";
import { recentlyRead } from "./recently-read.ts";

/** A digest by topic: "overview", "dead-letters", "batches", "audit-log", and "id:…" for each id that was asked for. */
export type Topics = Readonly<Record<string, string>>;

export interface ChangesSource {
  readonly service: string;
  readonly reads: Db;
  readonly deadLetters: readonly DeadLetters[];
  readonly health: Pick<Health, "report">;
  readonly find: (question: WhyQuestion) => Promise<FoundEntries>;
  /** Digests of what only this service has. */
  readonly changes?: ((db: Queryable) => Promise<Topics>) | undefined;
}

export type ReadChanges = (ids: readonly string[]) => Promise<Topics>;

// Several processes of the gateway ask once a second each.
const keptMs = 500;

export function changesReader(source: ChangesSource): ReadChanges {
  const readShared = recentlyRead(keptMs, () => readTopics(source));
  return async (ids) => {
    const topics: Record<string, string> = { ...(await readShared()) };
    for (const id of ids) topics[`id:${id}`] = digest(await source.find({ id }));
    return topics;
  };
}

export const idsMax = 8;

export function changesRoute(app: HttpApp, authenticate: Authenticate, read: ReadChanges): void {
  app.get(
    "/v1/admin/changes",
    guarded(
      authenticate,
      { service: ["gateway-bff"] },
      {
        // Between a service and the gateway of the same version.
        hide: true,
        operationId: "getChanges",
        querystring: Type.Object({
          ids: Type.Optional(
            Type.String({
              maxLength: 4_000,
              description: `Also a topic for each of these ids, as a JSON array; at most ${idsMax}.`,
              examples: ['["u_1"]'],
            }),
          ),
        }),
        response: { 200: named("ServiceChanges", { topics: Type.Record(Type.String(), Type.String()) }) },
      },
    ),
    async ({ query: { ids } }) => ({ topics: await read(ids === undefined ? [] : parseIds(ids)) }),
  );
}

function parseIds(text: string): readonly string[] {
  const isIds = (value: unknown): value is string[] =>
    Array.isArray(value) && value.length <= idsMax && value.every((id) => typeof id === "string");
  try {
    const ids: unknown = JSON.parse(text);
    if (isIds(ids)) return ids;
  } catch {
    // Not JSON.
  }
  throw problems.invalidField("query.ids", `is not a JSON array of at most ${idsMax} ids`);
}

const digest = (value: unknown): string => hash("sha256", JSON.stringify(value), "base64url").slice(0, 22);

async function readTopics({ service, reads, deadLetters, health, changes }: ChangesSource): Promise<Topics> {
  const [rows, report, own = {}] = await Promise.all([selectNewest(reads, service), health.report(), changes?.(reads)]);
  const dead: unknown[] = [];
  for (const table of deadLetters) dead.push(await table.preview(reads, {}, deadCountMax));
  const { acts, batches, minute, audit } = rows;
  const engines = report.checks.map(({ name, ok }) => [name, ok]);
  return {
    // Behind the bound of the count, an act is what shows that there are fewer.
    "dead-letters": digest([dead, acts]),
    batches: digest(batches),
    ...own,
    "audit-log": digest([acts, own["audit-log"]]),
    overview: digest([minute, audit, report.status, engines]),
  };
}

interface Newest {
  readonly acts: unknown;
  readonly batches: unknown;
  readonly minute: string | null;
  readonly audit: string | null;
}

// Transactions may commit in another order than they took their ids: the highest id alone could hide a later commit.
const actsMax = 20;
const batchesMax = 20;
// Past it, the newest one and the acts of staff still tell.
const deadCountMax = 1_000;

async function selectNewest(db: Queryable, service: string): Promise<Newest> {
  const { rows } = await db.query<Newest>({
    name: "newest rows of the console",
    text: `
select (select json_agg(act_id) from (select act_id from staff_acts order by act_id desc limit ${actsMax}) a) as acts,
       (select json_agg(b) from (select batch_id, state, examined, applied, error from dead_letter_batches
                                  order by created_at desc, batch_id desc limit ${batchesMax}) b) as batches,
       (select max(minute) from console_samples)::text as minute,
       (select finished_at from audits where name = $1)::text as audit`,
    values: [service],
  });
  return rows[0] as Newest;
}
