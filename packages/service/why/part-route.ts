/** What the database of this service knows about an id. The gateway asks all services, and puts their parts together. */
import { type Authenticate, guarded, type HttpApp, problems } from "@todoke/http";
import { type FoundEntries, type Link, linkKinds, type WhyQuestion } from "@todoke/kernel/why";
import { Type } from "typebox";
import { WhyParams, WhyPartView } from "./schemas.ts";

export interface WhyPartRouteOptions {
  readonly authenticate: Authenticate;
  readonly find: (question: WhyQuestion) => Promise<FoundEntries>;
}

export const linksMax = 12;

export function whyPartRoute(app: HttpApp, { authenticate, find }: WhyPartRouteOptions): void {
  app.get(
    "/v1/admin/why/:id",
    guarded(
      authenticate,
      { staff: "VIEWER" },
      {
        operationId: "explainIdHere",
        summary: "Explain an ID in one service",
        tags: ["Operations"],
        description:
          "Returns what the database of this service knows about an id. The gateway explains it over all services.",
        params: WhyParams,
        querystring: Type.Object({
          links: Type.Optional(
            Type.String({
              maxLength: 4_000,
              description: `Look up these ids instead, each as \`<kind>:<id>\`, with spaces between; at most ${linksMax}.`,
              examples: ["event:0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f"],
            }),
          ),
        }),
        response: { 200: WhyPartView },
      },
    ),
    async ({ params: { id }, query: { links } }) => {
      const questions = links === undefined ? [{ id }] : parseLinks(links);
      const found: FoundEntries[] = [];
      for (const question of questions) found.push(await find(question));
      return { entries: found.flatMap(({ entries }) => entries), failed: found.flatMap(({ failed }) => failed) };
    },
  );
}

export const formatLinks = (links: readonly Link[]): string => links.map(({ kind, id }) => `${kind}:${id}`).join(" ");

function parseLinks(text: string): readonly Link[] {
  const links = text.split(" ").map((link) => {
    const at = link.indexOf(":");
    const kind = linkKinds.find((each) => each === link.slice(0, Math.max(0, at)));
    if (!kind || at === link.length - 1)
      throw problems.invalidField("query.links", `has ${JSON.stringify(link)}, which is not <kind>:<id>`);
    return { kind, id: link.slice(at + 1) };
  });
  if (links.length > linksMax) throw problems.invalidField("query.links", `has more than ${linksMax} links`);
  return links;
}
