/** Routes for the gateway only: it has verified the identities, and knows who may see whose name. */

import { UserView } from "@todoke/contracts/api";
import { guarded, type HttpApp, shareReads, UserIds } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { selectDisplayNames, selectEach } from "../store/users.ts";
import { formatEtag } from "./request.ts";
import { DisplayNamesView, ResolveBody } from "./schemas.ts";

export function identityRoutes(app: HttpApp, { authenticate, db, resolveIdentity }: Deps): void {
  const gateway = { service: ["gateway-bff"] } as const;

  app.post(
    "/identities::resolve",
    guarded(authenticate, gateway, {
      operationId: "resolveIdentity",
      summary: "Resolve an identity",
      tags: ["Account"],
      description:
        "Finds or creates the user of an identity. The claims are stored with the identity. Only provider and subject identify the user.",
      body: ResolveBody,
      response: { 200: UserView },
    }),
    async ({ body: { provider, subject, ...claims }, caller }) =>
      resolveIdentity({ provider, subject, claims, caller }),
  );

  app.get(
    "/display-names",
    guarded(authenticate, gateway, {
      operationId: "listDisplayNames",
      summary: "List display names",
      tags: ["Account"],
      description: "Returns the display names of users. Users without one, and unknown ones, are left out.",
      querystring: Type.Object({ user_ids: UserIds }),
      response: { 200: DisplayNamesView },
    }),
    async ({ query }) => ({ users: await selectDisplayNames(db, query.user_ids.split(",")) }),
  );

  shareReads(app, {
    authenticate,
    name: "users",
    operationId: "getUsers",
    summary: "Get many users",
    tag: "Account",
    view: UserView,
    read: async (userIds) =>
      (await selectEach(db, userIds)).map((user) => user && { status: 200, value: user, etag: formatEtag(user) }),
  });
}
