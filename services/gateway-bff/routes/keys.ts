/** The API keys of all services, for admins. */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp } from "@todoke/http";
import { KeysQuery, keyFields, readKeys, type StaffReads } from "@todoke/service";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { askServices } from "../staff/ask-services.ts";
import { toSearch } from "./forward.ts";
import { FailedServices } from "./schemas.ts";

const KeyList = named("ApiKeyList", {
  keys: Type.Array(named("ApiKey", { ...keyFields, services: Type.Array(Type.String()) })),
  failed: FailedServices,
});
type Key = Static<typeof KeyList>["keys"][number];

export function keyRoutes(
  app: HttpApp,
  deps: Pick<Deps, "authenticate" | "upstreams"> & { readonly staffReads: StaffReads },
): void {
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
