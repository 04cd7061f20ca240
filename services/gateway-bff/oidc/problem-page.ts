/** Shows problems of a login to browsers as a page with a link to try again. Programs get problem+json. */
import { pageHeaders } from "@todoke/http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { requestLanguage } from "../language/accept-language.ts";
import { isProblem } from "../language/problem-texts.ts";
import { escapeHtml } from "../page/html.ts";

const texts = {
  en: { again: "Try to log in again", home: "To the front page" },
  ja: { again: "もう一度ログインする", home: "トップページへ" },
} as const;

const headers = {
  "content-type": "text/html; charset=utf-8",
  // Sends no referrer by default: the address of this page may contain a code.
  ...pageHeaders(["style-src 'self'"]),
};

export const wantsPage = (request: FastifyRequest): boolean => /\btext\/html\b/.test(request.headers.accept ?? "");

/** Route options: every problem of the route, also one from a hook before it, becomes a page. */
export const problemsAsPages = {
  onSend: async (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> => {
    if (!isProblem(reply.getHeader("content-type")) || !wantsPage(request)) return payload;
    const { title, detail, instance } = JSON.parse(String(payload)) as Record<"title" | "detail" | "instance", string>;
    const language = requestLanguage(request);
    const t = texts[language];
    reply.headers(headers);
    return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="stylesheet" href="/page/page.css">
</head>
<body><main><h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(detail)}</p>
<p><a class="button" href="/login">${t.again}</a> <a href="/">${t.home}</a></p>
<p><small>${escapeHtml(instance)}</small></p>
</main></body>
</html>
`;
  },
};
