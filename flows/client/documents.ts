/** The OpenAPI documents of running services, as deployed: without the operators' routes of development. */
import { startAll } from "../all-services.ts";
import type { ApiDocument, ApiDocuments } from "./openapi.ts";

export async function readDocuments(): Promise<ApiDocuments> {
  await using all = await startAll();
  const named = all.running.map(async ({ name, url }) => {
    return [name, (await (await fetch(`${url}/openapi.json`)).json()) as ApiDocument] as const;
  });
  return Object.fromEntries(await Promise.all(named));
}
