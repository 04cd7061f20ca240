/** The refusals and headers that every route of the gateway has in the API document, besides its own. */
import { type HttpApp, problems } from "@todoke/http";
import { accountInactive, credentialsAmbiguous, csrfRefused } from "../problems.ts";

export function describeRefusals(app: HttpApp): void {
  app.addHook("onRoute", (route) => {
    const { schema, config, method } = route;
    if (!schema || schema.hide) return;
    const isGuarded = config?.rule && !config.rule.isPublic;
    const guard = isGuarded ? [credentialsAmbiguous, ...(config.inactiveToo ? [] : [accountInactive])] : [];
    const csrf = isGuarded && method !== "GET" ? [csrfRefused] : [];
    route.schema = {
      ...schema,
      refusals: [...(schema.refusals ?? []), ...guard, ...csrf, problems.rateLimited],
      responseHeaders: [...(schema.responseHeaders ?? []), "ratelimit", "ratelimit-policy"],
    };
  });
}
