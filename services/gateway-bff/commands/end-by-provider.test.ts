import { expect, test } from "vitest";
import { endByProvider, verifyingMax } from "./end-by-provider.ts";

/** A provider whose verifications wait until the test releases them. */
function setup() {
  const waiting: (() => void)[] = [];
  const end = endByProvider({
    provider: {
      verifyLogout: async (jti) => {
        await new Promise<void>((resolve) => waiting.push(resolve));
        return { issuer: "https://id.example", jti, subject: "alice" };
      },
    },
    sessions: { endByProvider: async () => 1 },
  });
  return { waiting, send: (token: string) => end(token, async () => undefined) };
}

test("1,000 logout tokens are verified at a time, and one more is refused with 503", async () => {
  const { waiting, send } = setup();
  const sent = Array.from({ length: verifyingMax }, (_, n) => send(`token-${n}`));
  expect([verifyingMax, waiting.length]).toEqual([1_000, 1_000]);
  const refused = send("one more").catch((error: unknown) => error);
  expect(waiting).toHaveLength(1_000);
  expect(await refused).toMatchObject({ status: 503, retryAfterSeconds: 1 });
  for (const release of waiting) release();
  expect(await Promise.all(sent)).toHaveLength(1_000);
});

test("a verified logout token makes room for the next one, also if the provider refuses it", async () => {
  let verified = 0;
  const end = endByProvider({
    provider: {
      verifyLogout: async (jti) => {
        if (++verified % 2 === 0) throw new Error("not valid");
        return { issuer: "https://id.example", jti, subject: "alice" };
      },
    },
    sessions: { endByProvider: async () => 1 },
  });
  for (let n = 0; n < 2 * verifyingMax; n++) await end("token", async () => undefined).catch(() => undefined);
  expect(verified).toBe(2 * verifyingMax);
});
