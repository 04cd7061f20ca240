/** The way in: whom a provider's word means. For the gateway alone, which has checked that word. */
import { type HttpApp, requires } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { ResolveBody, UserView } from "./schemas.ts";

export function identityRoutes(app: HttpApp, { authenticate, resolveIdentity }: Deps): void {
  app.post(
    "/identities::resolve",
    {
      ...requires(authenticate, { service: ["gateway-bff"] }),
      schema: {
        operationId: "resolveIdentity",
        summary:
          "The user whom an identity names, made if there is none yet; what else is told of them is kept up to date",
        body: ResolveBody,
        response: { 200: UserView },
      },
    },
    async ({ body: { provider, subject, ...claims }, caller }) =>
      resolveIdentity({ provider, subject, claims, caller }),
  );
}
