import { buildHttpApp, problems as edge, publicRoute } from "@todoke/http";
import type { ProblemFactory } from "@todoke/kernel/problem";
import { expect, test } from "vitest";
import * as gatewayProblems from "../problems.ts";
import { translate, translateProblems } from "./problem-texts.ts";

const { upstreamProblems, ...others } = gatewayProblems;
const declared: readonly ProblemFactory[] = [
  ...Object.values(upstreamProblems).flatMap((problems) => Object.values(problems)),
  ...Object.values(others),
  edge.unauthenticated,
  edge.forbidden,
  edge.tooManyInFlight,
  edge.rateLimited,
];

test("every problem of the gateway has a Japanese text", () => {
  const translated = declared.map((problem) => translate(problem("in English").toJSON(), "ja"));
  for (const { code, title, detail } of translated)
    expect([code, title + detail]).toEqual([code, expect.stringMatching(/[ぁ-ん]/)]);
  expect(translated.length).toBeGreaterThan(20);
});

test("a problem is sent in the requested language, with Content-Language and the same code", async () => {
  const app = await buildHttpApp({ title: "gateway", version: "0", log: { level: "silent" } });
  translateProblems(app);
  const schema = { hide: true };
  app.get("/limited", { ...publicRoute, schema }, () => {
    throw edge.rateLimited("wait for 3 s", { retryAfterSeconds: 3 });
  });
  app.get("/fine", { ...publicRoute, schema }, async () => ({ fine: true }));
  const ask = async (url: string, language: string) => {
    const { headers, ...answer } = await app.inject({ url, headers: { "accept-language": language } });
    return {
      ...answer.json(),
      language: headers["content-language"],
      vary: headers.vary,
      wait: headers["retry-after"],
    };
  };

  const english = await ask("/limited", "fr, en;q=0.5");
  expect(english).toMatchObject({ code: "rate-limited", title: "Too many requests", language: "en", wait: "3" });
  const japanese = await ask("/limited", "ja-JP, en;q=0.5");
  expect(japanese).toMatchObject({ code: "rate-limited", title: "リクエストが多すぎます", language: "ja", wait: "3" });
  expect(japanese.vary).toBe("accept-language");
  expect(japanese.status).toBe(english.status);
  // Problems of packages/http without a translation stay in English.
  expect(await ask("/nowhere", "ja")).toMatchObject({ code: "not-found", language: "en" });
  expect(await ask("/fine", "ja")).toMatchObject({ fine: true, language: undefined });
  await app.close();
});
