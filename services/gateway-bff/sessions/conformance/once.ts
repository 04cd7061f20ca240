/** What is kept to be taken once. */
import { expect, test } from "vitest";
import type { StoreUnderTest } from "../conformance.ts";

export function onceConforms({ name, stage }: StoreUnderTest): void {
  test(`${name}: of fifty concurrent callers at two processes, one gets a one-time value`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    const value = { nonce: "n", verifier: "v", returnTo: "/shop?q=\u{1f3ae}" };
    expect(await here.putOneTime("login", "state-1", value, 60_000)).toBe(true);
    const taken = await Promise.all(
      Array.from({ length: 50 }, (_, n) => (n % 2 ? here : there).takeOneTime("login", "state-1")),
    );
    expect(taken.filter((each) => each !== undefined)).toEqual([value]);
    expect(await here.takeOneTime("login", "state-1")).toBeUndefined();
  });

  test(`${name}: a name can be put once until it is taken or expires`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    const put = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? here : there).putOneTime("logout", "jti-1", n, 60_000)),
    );
    const winners = put.flatMap((stored, n) => (stored ? [n] : []));
    expect(winners.length).toBe(1);
    await t.pass(20_000);
    expect(await here.putOneTime("logout", "jti-1", "again", 60_000)).toBe(false);
    expect(await there.takeOneTime("logout", "jti-1")).toBe(winners[0]);
    expect(await here.putOneTime("logout", "jti-1", "again", 60_000)).toBe(true);
  });

  test(`${name}: an expired one-time value is gone, and its name is free`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.putOneTime("native-code", "code-1", "one", 60_000);
    await store.putOneTime("native-code", "code-2", "two", 60_000);
    await t.pass(60_000);
    expect(await store.takeOneTime("native-code", "code-1")).toBeUndefined();
    expect(await store.putOneTime("native-code", "code-2", "other", 60_000)).toBe(true);
    expect(await store.takeOneTime("native-code", "code-2")).toBe("other");
  });

  test(`${name}: kinds have separate names`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.putOneTime("login", "same", "a login", 60_000);
    expect(await store.takeOneTime("native-code", "same")).toBeUndefined();
    expect(await store.putOneTime("native-code", "same", "a code", 60_000)).toBe(true);
    expect(await store.takeOneTime("login", "same")).toBe("a login");
    expect(await store.takeOneTime("native-code", "same")).toBe("a code");
  });
}
