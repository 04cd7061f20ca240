/** The page of the HTTP API, by Scalar, from the document of running services. */
import { buildHttpApp, docsPage } from "@todoke/http";
import type { startServices } from "../../running-services.ts";
import { escapeHtml } from "./render.ts";

type Services = Awaited<ReturnType<typeof startServices>>["services"];

/** The document as the gateway serves it, with the addresses of `npm start`. */
export async function readApiDocument({ running, gateways }: Services): Promise<object> {
  const text = await (await fetch(`${gateways[0]}/openapi.json`)).text();
  const ports = { account: 8081, entitlement: 8082, notification: 8083, matchmaking: 8084, points: 8085, orders: 8086 };
  const known = Object.entries(ports).map(([name, port]) => {
    const { url = "" } = running.find((service) => service.name === name) ?? {};
    return [url, `http://localhost:${port}`] as const;
  });
  const named = known.reduce((replaced, [from, to]) => replaced.replaceAll(from, to), text);
  const gateway = { url: "http://localhost:8080", description: "The gateway of `npm start`, for players." };
  return JSON.parse(named, (key, value) => (key === "url" && value === "/" ? gateway.url : value));
}

/** Scalar's script, and the document as one: a page that was opened as a file may not fetch. */
export async function apiAssets(apiDocument: object): Promise<Readonly<Record<string, string>>> {
  await using app = await buildHttpApp({ title: "docs", version: "0", log: { level: "silent" } });
  await docsPage(app);
  const page = (await app.inject("/docs/")).body;
  const [, path = ""] = /src="(js\/scalar[^"]*)"/.exec(page) ?? [];
  const script = await app.inject(`/docs/${path}`);
  if (script.statusCode !== 200) throw new Error("the script of the API reference is not at /docs");
  return { "scalar.js": script.body, "openapi.js": `window.openApiDocument = ${JSON.stringify(apiDocument)};\n` };
}

/** A page of its own: Scalar has its own navigation, search and colours. */
export const apiPage = (): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${escapeHtml("default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:")}">
<title>HTTP API · Todoke</title>
<link rel="stylesheet" href="assets/site.css">
</head>
<body class="api">
<header><a class="home" href="index.html">Todoke</a><a href="events.html">Events</a><a href="docs/errors.html">Errors</a></header>
<div id="app"></div>
<script src="assets/openapi.js"></script>
<script src="assets/scalar.js"></script>
<script src="assets/api.js"></script>
</body>
</html>
`;
