/** flows/client-examples.test.ts kills the whole shop at every call, against the real services. */
import { Problem } from "@todoke/client";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { createPurchases, type Todoke } from "./purchases.ts";

const shopMigrations = { name: "arena-shop", dir: new URL("./migrations/", import.meta.url) };

test("a copy whose hold is answered after another copy has refused the purchase does not capture it", async () => {
  await using t = await testDatabase({ sets: [shopMigrations] });
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<{ hold_id: string }>()];
  const captured: string[] = [];
  const slow = {
    points: {
      placeHold: () => {
        asked.resolve();
        return answer.promise;
      },
      captureHold: async ({ hold_id }: { hold_id: string }) => void captured.push(hold_id),
    },
    entitlements: { grant: async () => {} },
  } as unknown as Todoke;
  const refused = {
    points: {
      placeHold: async () => {
        throw new Problem({ status: 409, code: "insufficient-points", title: "", detail: "" });
      },
    },
  } as unknown as Todoke;

  const late = createPurchases(t.db, slow).buy("u_1", "p_1", "fire-sword");
  await asked.promise;
  expect(await createPurchases(t.db, refused).buy("u_1", "p_1", "fire-sword")).toMatchObject({ state: "REFUSED" });
  answer.resolve({ hold_id: "h_1" });
  expect(await late).toMatchObject({ state: "REFUSED", hold_id: null });
  expect(captured).toEqual([]);
});
