/** The provider's tokens are refreshed by one process at a time, and what a late one brings is not kept. */
import { expect, test } from "vitest";
import type { StoreUnderTest } from "../conformance.ts";
import type { ProviderTokens, RefreshClaim, SessionStore } from "../index.ts";
import { newSession, settings, userSnapshot } from "../testing.ts";

const tokens = (generation: number, about: Partial<ProviderTokens> = {}): ProviderTokens => ({
  idToken: `id-${generation}`,
  accessToken: `access-${generation}`,
  refreshToken: `refresh-${generation}`,
  expiresInSeconds: 300,
  ...about,
});

/** A minute before the end of an access token of 300 s. */
const dueMs = 240_000;

/** The lease: longer than any test. */
const holdMs = 60_000;

async function loggedIn(store: SessionStore, about: Partial<ProviderTokens> = {}) {
  await store.saveUser(userSnapshot());
  return store.create(newSession({ tokens: tokens(1, about) }));
}

async function taken(store: SessionStore, sessionId: string): Promise<RefreshClaim> {
  const refresh = await store.claimRefresh(sessionId, holdMs);
  if (!refresh) throw new Error("the refresh was not to be had");
  return refresh;
}

export function refreshConforms({ name, stage }: StoreUnderTest): void {
  test(`${name}: a refresh is due a minute before expiry, and one process claims it`, async () => {
    await using t = await stage();
    const processes = [t.open(), t.open()] as const;
    const { token, sessionId } = await loggedIn(processes[0]);
    expect(await processes[0].claimRefresh(sessionId, holdMs)).toBeUndefined();
    expect(await processes[0].find(token)).toMatchObject({ refreshDue: false });
    await t.pass(dueMs);
    expect(await processes[1].find(token)).toMatchObject({ refreshDue: true });
    const turns = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? processes[1] : processes[0]).claimRefresh(sessionId, holdMs)),
    );
    const claimed = turns.filter((turn) => turn !== undefined);
    expect(claimed.length).toBe(1);
    expect(claimed[0]).toMatchObject({ sessionId, issuer: "https://id.example", tokens: tokens(1) });
    expect(await processes[0].find(token)).toMatchObject({ refreshDue: false }); // It is claimed.
  });

  test(`${name}: new tokens are stored, and the next refresh is due in time`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    const { token, sessionId } = await loggedIn(here);
    await t.pass(dueMs);
    expect(await here.saveTokens(await taken(here, sessionId), tokens(2))).toBe(true);
    expect(await there.getTokens(sessionId)).toEqual(tokens(2));
    expect(await there.claimRefresh(sessionId, holdMs)).toBeUndefined();
    await t.pass(dueMs);
    expect(await there.find(token)).toMatchObject({ refreshDue: true });
    expect((await taken(there, sessionId)).tokens).toEqual(tokens(2));
  });

  test(`${name}: an expired lease can be claimed again, and late tokens are not stored`, async () => {
    await using t = await stage();
    const [slow, quick] = [t.open(), t.open()];
    const { sessionId } = await loggedIn(slow);
    await t.pass(dueMs);
    const late = await taken(slow, sessionId);
    expect(await quick.claimRefresh(sessionId, holdMs)).toBeUndefined();
    await t.pass(holdMs);
    const next = await taken(quick, sessionId);
    expect(await slow.saveTokens(late, tokens(2))).toBe(false);
    await slow.postponeRefresh(late, 0); // Nor can it end the other's turn.
    expect(await slow.claimRefresh(sessionId, holdMs)).toBeUndefined();
    expect(await quick.saveTokens(next, tokens(3))).toBe(true);
    expect(await quick.saveTokens(next, tokens(4))).toBe(false);
    expect(await slow.getTokens(sessionId)).toEqual(tokens(3));
  });

  test(`${name}: late tokens are stored if no other process has claimed the refresh`, async () => {
    await using t = await stage();
    const store = t.open();
    const { sessionId } = await loggedIn(store);
    await t.pass(dueMs);
    const late = await taken(store, sessionId);
    await t.pass(2 * holdMs);
    expect(await store.saveTokens(late, tokens(2))).toBe(true);
  });

  test(`${name}: a postponed refresh is due again after its delay`, async () => {
    await using t = await stage();
    const store = t.open();
    const { token, sessionId } = await loggedIn(store);
    await t.pass(dueMs);
    const refresh = await taken(store, sessionId);
    await store.postponeRefresh(refresh, 60_000);
    expect(await store.saveTokens(refresh, tokens(2))).toBe(false);
    await t.pass(20_000);
    expect(await store.find(token)).toMatchObject({ refreshDue: false });
    await t.pass(40_000);
    expect(await store.find(token)).toMatchObject({ refreshDue: true });
    expect((await taken(store, sessionId)).tokens).toEqual(tokens(1));
  });

  test(`${name}: tokens of an ended session are neither returned nor stored`, async () => {
    await using t = await stage();
    const store = t.open();
    const { sessionId } = await loggedIn(store);
    await t.pass(dueMs);
    const refresh = await taken(store, sessionId);
    await store.end("u_1", sessionId);
    expect(await store.saveTokens(refresh, tokens(2))).toBe(false);
    expect(await store.getTokens(sessionId)).toBeUndefined();

    const over = await loggedIn(store);
    await t.pass(settings.idleMs);
    expect(await store.claimRefresh(over.sessionId, holdMs)).toBeUndefined();
    expect(await store.getTokens(over.sessionId)).toBeUndefined();
  });

  test(`${name}: a refused refresh ends the session only while the claim is valid`, async () => {
    await using t = await stage();
    const [slow, quick] = [t.open(), t.open()];
    const { token, sessionId } = await loggedIn(slow);
    await t.pass(dueMs);
    const late = await taken(slow, sessionId);
    await t.pass(holdMs);
    expect(await quick.saveTokens(await taken(quick, sessionId), tokens(2))).toBe(true);
    expect(await slow.endOnRefusedRefresh(late)).toBe(false);
    expect(await quick.find(token)).toBeDefined();
    await t.pass(dueMs);
    expect(await quick.endOnRefusedRefresh(await taken(quick, sessionId))).toBe(true);
    expect(await slow.find(token)).toBeUndefined();
  });

  test(`${name}: no refresh is due without a refresh token or an expiry`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot());
    const { idToken, accessToken, refreshToken } = tokens(1);
    for (const some of [
      { idToken, accessToken, expiresInSeconds: 300 },
      { idToken, accessToken, refreshToken: refreshToken ?? "" },
    ]) {
      const { token, sessionId } = await store.create(newSession({ tokens: some }));
      await t.pass(settings.idleMs / 2);
      expect(await store.find(token)).toMatchObject({ refreshDue: false });
      expect(await store.claimRefresh(sessionId, holdMs)).toBeUndefined();
      expect(await store.getTokens(sessionId)).toEqual(some);
    }
  });
}
