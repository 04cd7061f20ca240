/** What a browser sees of a log-in that failed: why, in words, and a way to try again. Programs get problem+json. */
import { pageHeaders } from "@todoke/http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { languageOf } from "../language.ts";
import { escaped } from "../page/html.ts";

const texts = {
  en: { again: "Try to log in again", home: "To the front page" },
  ja: { again: "もう一度ログインする", home: "トップページへ" },
} as const;

const headers = {
  "content-type": "text/html; charset=utf-8",
  // The address of this page may hold a code: it is told to nobody, by the usual referrer policy.
  ...pageHeaders(["style-src 'self'"]),
};

export const wantsPage = (request: FastifyRequest): boolean => /\btext\/html\b/.test(request.headers.accept ?? "");

/** For the options of a route. Whatever refuses the request, on the way to the route or in it, is shown as a page. */
export const problemsAsPages = {
  onSend: async (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> => {
    const isProblem = String(reply.getHeader("content-type")).startsWith("application/problem+json");
    if (!isProblem || !wantsPage(request)) return payload;
    const { title, detail, instance } = JSON.parse(String(payload)) as Record<"title" | "detail" | "instance", string>;
    const language = languageOf(request);
    const t = texts[language];
    reply.headers(headers);
    return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<link rel="stylesheet" href="/page.css">
</head>
<body><main><h1>${escaped(title)}</h1>
<p>${escaped(detail)}</p>
<p><a class="button" href="/login">${t.again}</a> <a href="/">${t.home}</a></p>
<p><small>${escaped(instance)}</small></p>
</main></body>
</html>
`;
  },
};
