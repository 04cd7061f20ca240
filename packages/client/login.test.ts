import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { LogInFailed, logIn } from "./login.ts";
import { fakeFetch, json } from "./testing/fake-fetch.ts";

const token = { session_token: "tds_1", token_type: "Bearer", expires_at: "2030-01-01T00:00:00Z" };

/** What the gateway is asked, and the browser's way back with `answer`. */
async function logInWith(answer: (query: URLSearchParams) => Record<string, string>) {
  const { fetch, sent } = fakeFetch(json(token));
  let query = new URLSearchParams();
  const pages: string[] = [];
  const session = logIn({
    gateway: "https://play.example/",
    fetch,
    openBrowser: (url) => {
      expect(url).toMatch(/^https:\/\/play\.example\/login\?/);
      query = new URL(url).searchParams;
      const back = new URL(query.get("redirect_uri") ?? "");
      back.search = String(new URLSearchParams(answer(query)));
      globalThis.fetch(back).then(async (response) => pages.push(await response.text()));
    },
  });
  const ended = await session.catch((error) => error);
  await expect.poll(() => pages.length).toBe(1);
  return { ended, sent, query, page: pages[0] };
}

const stateOf = (query: URLSearchParams) => query.get("state") ?? "";

test("a program logs in through the browser, with a code that only it can use", async () => {
  const { ended, sent, query, page } = await logInWith((asked) => ({ code: "c_1", state: stateOf(asked) }));
  expect(ended).toEqual(token);
  expect(page).toContain("You are logged in");
  expect(query.get("client")).toBe("native");
  expect(query.get("redirect_uri")).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/done$/);
  const { code, code_verifier } = JSON.parse(sent[0]?.body ?? "");
  expect([sent[0]?.url, code]).toEqual(["https://play.example/login/token", "c_1"]);
  expect(query.get("code_challenge")).toBe(hash("sha256", code_verifier, "base64url"));
  expect(sent[0]?.headers.authorization).toBeUndefined();
});

test("a refused log-in is an error, and nothing is fetched", async () => {
  const { ended, sent } = await logInWith((asked) => ({ error: "access_denied", state: stateOf(asked) }));
  expect(ended).toBeInstanceOf(LogInFailed);
  expect(ended.message).toContain("access_denied");
  expect(sent).toEqual([]);
});

test("a code with another state is ignored, and the log-in ends when it is aborted", async () => {
  const leave = new AbortController();
  const openBrowser = async (url: string) => {
    const back = new URL(new URL(url).searchParams.get("redirect_uri") ?? "");
    back.search = "?code=stolen&state=guessed";
    expect((await fetch(back)).status).toBe(404);
    expect((await fetch(`${back.origin}//`)).status).toBe(404);
    leave.abort(new Error("left"));
  };
  const { fetch: never, sent } = fakeFetch(json(token));
  await expect(
    logIn({ gateway: "https://play.example", openBrowser, fetch: never, signal: leave.signal }),
  ).rejects.toThrow("left");
  expect(sent).toEqual([]);
});
