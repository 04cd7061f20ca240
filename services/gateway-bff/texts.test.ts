import { buildHttpApp, problems as edge, everybody } from "@todoke/http";
import type { ProblemFactory } from "@todoke/kernel/problem";
import { expect, test } from "vitest";
import * as ofLogin from "./oidc/problems.ts";
import * as ofGateway from "./problems.ts";
import { inLanguage, speakTheirLanguage } from "./texts.ts";

const { upstreamProblems, ...others } = ofGateway;
const declared: readonly ProblemFactory[] = [
  ...Object.values(upstreamProblems).flatMap((ofOne) => Object.values(ofOne)),
  ...Object.values(others),
  ...Object.values(ofLogin),
  edge.unauthenticated,
  edge.forbidden,
  edge.tooManyInFlight,
];

test("everything that the gateway refuses by itself can be said in Japanese", () => {
  const said = declared.map((problem) => inLanguage(problem("in English").toJSON(), "ja"));
  for (const { code, title, detail } of said)
    expect([code, title + detail]).toEqual([code, expect.stringMatching(/[ぁ-ん]/)]);
  expect(said.length).toBeGreaterThan(20);
});

test("a refusal comes in the language that was asked for, and says which it is; its code is the same in all", async () => {
  const app = await buildHttpApp({ title: "gateway", version: "0", log: { level: "silent" } });
  speakTheirLanguage(app);
  const schema = { hide: true };
  app.get("/limited", { ...everybody, schema }, () => {
    throw ofGateway.rateLimited("wait for 3 s", { retryAfterSeconds: 3 });
  });
  app.get("/fine", { ...everybody, schema }, async () => ({ fine: true }));
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
  // What the edge of every service says has no other words: it stays as it is, and says so.
  expect(await ask("/nowhere", "ja")).toMatchObject({ code: "not-found", language: "en" });
  expect(await ask("/fine", "ja")).toMatchObject({ fine: true, language: undefined });
  await app.close();
});
