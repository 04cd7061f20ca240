/**
 * The last step of a login: a page of our own that continues by itself.
 *
 * A redirect back from the provider belongs to a navigation that another site started, and browsers do not send a
 * SameSite=Strict cookie with it: the user would arrive logged out. A page of our own starts a new navigation.
 */
import { pageHeaders } from "@todoke/http";
import type { FastifyReply } from "fastify";
import { escapeHtml } from "../page/html.ts";

/** `path` must be a safe path of our own (oidc/return-path.ts). */
export function sendLanding(reply: FastifyReply, path: string): FastifyReply {
  const href = escapeHtml(path);
  return reply
    .code(200)
    .header("content-type", "text/html; charset=utf-8")
    .headers(pageHeaders([])) // Sends no referrer: the address of this page contains the login's code.
    .send(
      `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${href}">` +
        `<title>Todoke</title><p><a href="${href}">Continue</a></p></html>`,
    );
}
