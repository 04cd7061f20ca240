/** The API keys of all services, for admins. */
import { named, ReasonBody } from "@todoke/contracts/api";
import { guarded, type HttpApp, IdempotencyHeaders, idempotencyKey, problems, staffActor } from "@todoke/http";
import { KeyParams, KeysQuery, keyFields, newKeyFields, readKeys, type StaffReads } from "@todoke/service";
import type { FastifyRequest } from "fastify";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import { reauthenticationRequired, upstreamProblems } from "../problems.ts";
import { type Answers, answersOf, askServices, deployedServices, ownName } from "../staff/ask-services.ts";
import type { Upstream } from "../upstreams/index.ts";
import { rejectStaleLogin, toSearch } from "./forward.ts";
import { FailedServices } from "./schemas.ts";

const KeyList = named("ApiKeyList", {
  keys: Type.Array(named("ApiKey", { ...keyFields, services: Type.Array(Type.String()) })),
  failed: FailedServices,
});
type Key = Static<typeof KeyList>["keys"][number];

const KeyChange = named("ApiKeyChange", {
  key_id: keyFields.key_id,
  services: Type.Array(Type.String(), { description: "The services that have done it." }),
  failed: FailedServices,
});

const NewKeyBody = named("NewApiKey", {
  ...newKeyFields,
  services: Type.Array(Type.String({ minLength: 1, maxLength: 63 }), {
    minItems: 1,
    maxItems: 16,
    uniqueItems: true,
    description: "The services that will accept the key.",
    examples: [["entitlement"]],
  }),
});

interface KeyDeps extends Pick<Deps, "authenticate" | "upstreams" | "reauthenticateMs"> {
  readonly staffReads: StaffReads;
}

export function keyRoutes(app: HttpApp, deps: KeyDeps): void {
  createRoute(app, deps);
  revokeRoute(app, deps);
  app.get(
    "/v1/admin/keys",
    guarded(
      deps.authenticate,
      { staff: "ADMIN" },
      {
        operationId: "listKeys",
        summary: "List API keys",
        tags: ["Operations"],
        description: "Returns the API keys of all services, newest first, each with the services that accept it.",
        querystring: KeysQuery,
        response: { 200: KeyList },
      },
    ),
    async (request) => {
      const { answers, failed } = await askServices(deps, request, {
        path: () => `/v1/admin/keys?${toSearch(request.query)}`,
        own: async () => ({ keys: await readKeys(deps.staffReads.reads, request.query) }),
      });
      const found = answers.flatMap(({ service, value }) =>
        (value as { keys: Omit<Key, "services">[] }).keys.map((key) => ({ service, key })),
      );
      return { keys: mergeKeys(found), failed: [...failed] };
    },
  );
}

const admins = { staff: "ADMIN" } as const;
const changeSchema = {
  tags: ["Operations"],
  headers: IdempotencyHeaders,
  passesOnRefusals: true,
  refusals: [reauthenticationRequired, ...Object.values(upstreamProblems).flatMap((its) => Object.values(its))],
  response: { 200: KeyChange },
};

/** A service that fails is named; if all do, their refusal is the answer. The same request again creates the key there too, and changes nothing at the others. */
function createRoute(app: HttpApp, { authenticate, upstreams, reauthenticateMs }: KeyDeps): void {
  app.post(
    "/v1/admin/keys",
    guarded(authenticate, admins, {
      ...changeSchema,
      operationId: "createKey",
      summary: "Create an API key",
      description:
        "Lets services accept a key that you have made: `tdk_` and at least 32 random bytes. Only its hash is sent and stored.",
      body: NewKeyBody,
      refusals: [...changeSchema.refusals, problems.apiKeyConflict],
    }),
    async (request) => {
      rejectStaleLogin(request.session, reauthenticateMs);
      const { services, ...body } = request.body;
      const deployed = deployedServices(upstreams);
      const targets = services.map((name) => {
        const found = deployed.find(([each]) => each === name);
        if (!found) throw problems.invalidField("body.services", `has ${name}, which accepts no keys here`);
        return found;
      });
      const { key } = idempotencyKey(request, request.caller);
      const create = postTo(request, { path: "/v1/admin/keys", key, body });
      const answers = await answersOf(targets.map(([name, upstream]) => [name, () => create(upstream)]));
      const [first] = answers.failed;
      if (first && answers.answers.length === 0) throw first.error;
      return toChange(body.key_id, answers);
    },
  );
}

/** At every service, because a key may be accepted by several. */
function revokeRoute(app: HttpApp, { authenticate, upstreams, reauthenticateMs, staffReads }: KeyDeps): void {
  app.post(
    "/v1/admin/keys/:key_id([^/:]+)::revoke",
    guarded(authenticate, admins, {
      ...changeSchema,
      operationId: "revokeKey",
      summary: "Revoke an API key",
      description:
        "Ends a key at every service. A service that fails is named: it accepts the key until it has revoked it.",
      params: KeyParams,
      body: ReasonBody,
    }),
    async (request) => {
      rejectStaleLogin(request.session, reauthenticateMs);
      const { key_id: keyId } = request.params;
      const key = idempotencyKey(request, request.caller);
      const path = `/v1/admin/keys/${keyId}:revoke`;
      const revoke = postTo(request, { path, key: key.key, body: request.body });
      const own = async () => {
        const { body } = await staffReads.revokeApiKey({
          key,
          actor: staffActor(request),
          keyId,
          reason: request.body.reason,
        });
        return JSON.parse(body.toString()) as unknown;
      };
      const { answers, failed } = await answersOf([
        ...deployedServices(upstreams).map(([name, upstream]) => [name, () => revoke(upstream)] as const),
        [ownName, own],
      ]);
      const revoked = answers.filter(({ value }) => (value as { readonly revoked: boolean }).revoked);
      return toChange(keyId, { answers: revoked, failed });
    },
  );
}

interface Post {
  readonly path: string;
  readonly key: string;
  readonly body: object;
}

const postTo =
  (request: FastifyRequest, { path, key, body }: Post) =>
  async (upstream: Upstream): Promise<unknown> => {
    const user = sessionUser(request);
    const call = { method: "POST", path, user, requestId: request.id, idempotencyKey: key } as const;
    return (await upstream.call({ ...call, body: JSON.stringify(body) })).value;
  };

const toChange = (key_id: string, { answers, failed }: Answers): Static<typeof KeyChange> => ({
  key_id,
  services: answers.map(({ service }) => service),
  failed: [...failed],
});

/** One row per key and state: a key that is revoked in only some services has two. */
function mergeKeys(found: readonly { readonly service: string; readonly key: Omit<Key, "services"> }[]): Key[] {
  const alike = Map.groupBy(found, ({ key }) => `${key.key_id} ${key.state}`);
  return [...alike.values()]
    .flatMap((group) => {
      const [first] = group;
      if (!first) return [];
      // The times have one format, so they sort as text.
      const last_used_at =
        group
          .map(({ key }) => key.last_used_at ?? "")
          .sort()
          .at(-1) || null;
      return [{ ...first.key, last_used_at, services: group.map(({ service }) => service) }];
    })
    .sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
}
