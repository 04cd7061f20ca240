/**
 * The last step of a log-in: a page of our own that goes on by itself.
 *
 * A redirect back from the provider belongs to a journey that began on another site, all the way to its end, and on such
 * a journey a browser does not send a cookie that is SameSite=Strict: whoever has just logged in would arrive as a
 * stranger. A page that is here already begins a new journey, and that one is ours.
 */
import { pageHeaders } from "@todoke/http";
import type { FastifyReply } from "fastify";
import { escaped } from "../page/html.ts";

/** `path` is one of our own, checked by whoever took it from the caller. */
export function sendLanding(reply: FastifyReply, path: string): FastifyReply {
  const href = escaped(path);
  return reply
    .code(200)
    .header("content-type", "text/html; charset=utf-8")
    .headers(pageHeaders([])) // The address of this page holds the code of the log-in: it is told to nobody.
    .send(
      `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${href}">` +
        `<title>Todoke</title><p><a href="${href}">Continue</a></p></html>`,
    );
}
