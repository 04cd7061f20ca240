/** The acts of staff on all services, newest first: those that every service records, and the audit of account. */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, problems } from "@todoke/http";
import { readStaffActs, StaffActView, type StaffReads } from "@todoke/service";
import type { FastifyRequest } from "fastify";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { type AuditRow, accountAct } from "../staff/account-acts.ts";
import { askServices, ownName } from "../staff/ask-services.ts";
import { type Act, mergeActs, type Positions, type SourcePage } from "../staff/merge-acts.ts";
import { toSearch } from "./forward.ts";
import { FailedServices } from "./schemas.ts";

const defaultLimit = 50;
const text = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

const Query = Type.Object({
  service: text(63, "Only acts on this service."),
  actor: text(160, "Only acts of this person: user:<id>."),
  target: text(400, "Only acts on this target."),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "Acts per page; the default is 50." })),
  cursor: text(4_096, "The `next_cursor` of the previous page."),
});
type Query = Static<typeof Query>;

const AuditLog = named("AuditLog", {
  acts: Type.Array(named("ServiceStaffAct", { service: Type.String(), ...StaffActView.properties })),
  failed: FailedServices,
  next_cursor: NextCursor,
});

export type AuditLogDeps = Pick<Deps, "authenticate" | "upstreams"> & { readonly staffReads: StaffReads };

export function auditLogRoute(app: HttpApp, deps: AuditLogDeps): void {
  app.get(
    "/v1/admin/audit-log",
    guarded(
      deps.authenticate,
      { staff: "VIEWER" },
      {
        operationId: "listAuditLog",
        summary: "List the audit log",
        tags: ["Operations"],
        description: "Returns the acts of staff on all services: who did what, to what and why; newest first.",
        querystring: Query,
        response: { 200: AuditLog },
      },
    ),
    async (request) => {
      const before = parsePositions(request.query.cursor);
      const { limit = defaultLimit } = request.query;
      const [services, account] = await Promise.all([
        readServices(deps, request, { query: request.query, before, limit }),
        readAccount(deps, request, { query: request.query, before, limit }),
      ]);
      const { acts, positions } = mergeActs([...services.pages, ...account.pages], before, limit);
      return {
        acts: acts as Static<typeof AuditLog>["acts"],
        failed: [...services.failed, ...account.failed],
        ...(positions && { next_cursor: encode(positions) }),
      };
    },
  );
}

interface Part {
  readonly query: Query;
  readonly before: Positions;
  readonly limit: number;
}

interface ActsAnswer {
  readonly acts: readonly Act[];
  readonly next_cursor?: string;
}

async function readServices(deps: AuditLogDeps, request: FastifyRequest, { query, before, limit }: Part) {
  const { service, actor, target } = query;
  const parametersOf = (name: string) => ({
    limit,
    ...(actor !== undefined && { actor }),
    ...(target !== undefined && { target }),
    ...(before[name] !== undefined && { cursor: base64(before[name]) }),
  });
  const { answers, failed } = await askServices(deps, request, {
    ...(service !== undefined && { services: [service] }),
    path: (name) => `/v1/admin/audit-log?${toSearch(parametersOf(name))}`,
    own: () => readStaffActs(deps.staffReads.reads, parametersOf(ownName)),
  });
  const pages = answers.map(({ service: source, value }): SourcePage => {
    const { acts, next_cursor } = value as ActsAnswer;
    return {
      source,
      acts: acts.map((act) => ({ ...act, service: source })),
      cursorOf: ({ at, act_id }) => `${at} ${act_id}`,
      hasMore: next_cursor !== undefined,
    };
  });
  return { pages, failed };
}

const auditSource = "account audit";

/** Account has an audit of its own, of which only what staff does belongs here. */
async function readAccount(deps: AuditLogDeps, request: FastifyRequest, { query, before, limit }: Part) {
  const { service = "account", actor, target: user_id } = query;
  const cursor = before[auditSource];
  const parameters = {
    limit,
    only: "acts",
    ...(actor !== undefined && { actor }),
    ...(user_id !== undefined && { user_id: user_id.slice(0, 128) }),
    ...(cursor !== undefined && { cursor: base64(cursor) }),
  };
  if (service !== "account") return { pages: [], failed: [] };
  const { answers, failed } = await askServices(deps, request, {
    services: ["account"],
    path: () => `/admin/audit?${toSearch(parameters)}`,
  });
  const pages = answers.map(({ value }): SourcePage => {
    const { audit, next_cursor } = value as { audit: readonly AuditRow[]; next_cursor?: string };
    return {
      source: auditSource,
      acts: audit.map(accountAct),
      cursorOf: ({ act_id }) => act_id.slice("audit-".length),
      hasMore: next_cursor !== undefined,
    };
  });
  return { pages, failed: failed.map(({ detail }) => ({ service: auditSource, detail })) };
}

const base64 = (text: string) => Buffer.from(text).toString("base64url");
const encode = (positions: Positions) => base64(JSON.stringify(positions));

function parsePositions(cursor: string | undefined): Positions {
  if (cursor === undefined) return {};
  try {
    const positions: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (positions !== null && typeof positions === "object" && Object.values(positions).every(isShortText))
      return positions as Positions;
  } catch {
    // Not a cursor of ours.
  }
  throw problems.invalidField("query.cursor", "must be the next_cursor of the previous page, unchanged");
}

const isShortText = (value: unknown) => typeof value === "string" && value.length <= 100;
