/**
 * No other site can have a browser do something here with its user's cookie.
 *
 * Two things are asked of every request that could change something, and each would do: a header that a form cannot send,
 * and that a script on another site may only send after we allowed it, which we never do (there are no CORS headers
 * here); and where the request comes from, which the browser itself writes and no script can.
 */
import type { FastifyRequest } from "fastify";
import { csrfRefused } from "../problems.ts";

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

export const isSafe = (method: string): boolean => safeMethods.has(method);

/** Throws unless the request is safe, or comes from a page of our own. Only for requests that came with a cookie. */
export function refuseForgery(
  { method, headers }: Pick<FastifyRequest, "method" | "headers">,
  ownOrigin: string,
): void {
  if (isSafe(method)) return;
  if (headers["x-todoke-request"] === undefined) throw csrfRefused("send the header X-Todoke-Request: 1");
  if (!isOurs(headers, ownOrigin)) throw csrfRefused("the request does not come from a page of this site");
}

/** A browser sends Origin, or at least Sec-Fetch-Site. What it sends of both must be ours; `Origin: null` is nobody's. */
function isOurs({ origin, "sec-fetch-site": site }: FastifyRequest["headers"], ownOrigin: string): boolean {
  if (origin === undefined && site === undefined) return false;
  return (origin === undefined || origin === ownOrigin) && (site === undefined || site === "same-origin");
}
