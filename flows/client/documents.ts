/** The OpenAPI documents of running services, as deployed: without the operators' routes of development. */
import { readDocuments as readFrom, startAll } from "../all-services.ts";
import type { ApiDocuments } from "./openapi.ts";

export async function readDocuments(): Promise<ApiDocuments> {
  await using all = await startAll();
  return (await readFrom(all)) as unknown as ApiDocuments;
}
