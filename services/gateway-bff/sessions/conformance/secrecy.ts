/** A reader of the store learns nothing that grants access. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import type { StoreUnderTest } from "../conformance.ts";
import { newSession, secret, userSnapshot } from "../testing.ts";

/** The ways in which a text could lie about in a store. */
function writingsOf(text: string): string[] {
  const bytes = Buffer.from(text);
  const random = Buffer.from(text.slice(4), "base64url"); // The bits of a token, without their writing.
  const writings = [text, text.slice(4), bytes.toString("hex"), bytes.toString("base64"), bytes.toString("base64url")];
  return [...writings, random.toString("hex"), random.toString("base64")];
}

export function secrecyConforms({ name, stage }: StoreUnderTest): void {
  test(`${name}: the stored data shows no token, code or provider value`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot());
    const [idToken, accessToken, refreshToken, verifier, state] = Array.from({ length: 5 }, () =>
      randomBytes(32).toString("base64url"),
    ) as [string, string, string, string, string];
    const { token, sessionId } = await store.create(newSession({ tokens: { idToken, accessToken, refreshToken } }));
    await store.find(token);
    await store.putOneTime("login", state, { verifier }, 60_000);
    const dump = await t.dump();
    expect(dump).toContain(sessionId);
    for (const canary of [token, idToken, accessToken, refreshToken, verifier, state])
      for (const writing of writingsOf(canary)) expect(dump).not.toContain(writing);
  });

  test(`${name}: a new secret in front keeps old tokens readable until the old secret is removed`, async () => {
    await using t = await stage();
    const [before, newSecret] = [t.open(), randomBytes(32)];
    await before.saveUser(userSnapshot());
    const old = await before.create(newSession());
    await before.putOneTime("login", "state-1", "old", 60_000);
    const both = t.open({ secrets: [newSecret, secret] });
    const { sessionId } = await both.create(newSession());
    expect(await both.getTokens(old.sessionId)).toEqual(newSession().tokens);
    expect(await both.takeOneTime("login", "state-1")).toBe("old");
    const after = t.open({ secrets: [newSecret] });
    expect(await after.getTokens(sessionId)).toEqual(newSession().tokens);
    expect(await after.getTokens(old.sessionId)).toBeUndefined();
    expect(await after.find(old.token)).toMatchObject({ sessionId: old.sessionId });
  });
}
