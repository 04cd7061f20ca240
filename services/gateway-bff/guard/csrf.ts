/**
 * Keeps other sites from using a browser's session cookie.
 *
 * Every request that could change something needs two things, each of them sufficient: a header that a form cannot send,
 * and that a script of another site may send only with our CORS permission, which does not exist; and the gateway's own origin,
 * which the browser writes and no script can change.
 */
import type { FastifyRequest } from "fastify";
import { csrfRefused } from "../problems.ts";

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

export const isSafe = (method: string): boolean => safeMethods.has(method);

/** Throws unless the request is safe or comes from the gateway's own page. Only for requests with a cookie. */
export function rejectForgery(
  { method, headers }: Pick<FastifyRequest, "method" | "headers">,
  ownOrigin: string,
): void {
  if (isSafe(method)) return;
  if (headers["x-todoke-request"] === undefined) throw csrfRefused("send the header X-Todoke-Request: 1");
  if (!isOwnOrigin(headers, ownOrigin)) throw csrfRefused("the request does not come from a page of this site");
}

/** A browser sends Origin, or at least Sec-Fetch-Site. Each one sent must be ours; `Origin: null` is not. */
function isOwnOrigin({ origin, "sec-fetch-site": site }: FastifyRequest["headers"], ownOrigin: string): boolean {
  if (origin === undefined && site === undefined) return false;
  return (origin === undefined || origin === ownOrigin) && (site === undefined || site === "same-origin");
}
