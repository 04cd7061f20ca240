/** Resolves identities, for the gateway only: it has verified them. */

import { UserView } from "@todoke/contracts/api";
import { type HttpApp, requires } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { ResolveBody } from "./schemas.ts";

export function identityRoutes(app: HttpApp, { authenticate, resolveIdentity }: Deps): void {
  app.post(
    "/identities::resolve",
    {
      ...requires(authenticate, { service: ["gateway-bff"] }),
      schema: {
        operationId: "resolveIdentity",
        summary: "Resolve an identity",
        tags: ["Account"],
        description:
          "Finds or creates the user of an identity. The claims are stored with the identity. Only provider and subject identify the user.",
        body: ResolveBody,
        response: { 200: UserView },
      },
    },
    async ({ body: { provider, subject, ...claims }, caller }) =>
      resolveIdentity({ provider, subject, claims, caller }),
  );
}
