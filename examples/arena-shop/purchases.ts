/**
 * A purchase takes points in one service and grants an item in another. No transaction spans the two, so the order of the steps has
 * to be safe wherever the shop is killed:
 *
 *   record the purchase -> NEW     Before the first call, so that a restarted shop knows what to continue.
 *   hold the points     -> HELD    Refused if there are too few. A hold that is never captured expires, and returns its points.
 *   capture the hold    -> PAID    Works once per hold, and not after the hold has expired.
 *   grant the item      -> GRANTED After the payment, and repeated until it has worked.
 *
 * The state is recorded after each call. A shop that was killed between the two makes the call again, with the same key: Todoke
 * answers with what the first call did. So two copies of the shop may also work on one purchase at the same time.
 *
 * Why not spend the points at once? A refusal is not remembered with the key. A spend that was delayed in the network could arrive
 * after the shop has recorded that the player had too few points, and take points for a purchase that is refused. A delayed hold
 * only expires. Why not grant first? The hold could expire before the capture, and the item would be free.
 */
import { isProblem, type ServicesClient } from "@todoke/client";
import type { Db } from "@todoke/kernel/db";

/** Prices are the shop's. The player only names the item. */
export const items: Readonly<Record<string, bigint>> = {
  "fire-sword": 300n,
  "ice-shield": 200n,
  "golden-crown": 5_000n,
};

export interface Purchase {
  readonly user_id: string;
  readonly purchase_id: string;
  readonly item: string;
  readonly price: bigint;
  readonly state: "NEW" | "HELD" | "PAID" | "GRANTED" | "REFUSED";
  readonly hold_id: string | null;
}

export type Todoke = ServicesClient<{ readonly points: string; readonly entitlement: string }>;

/** Does the work of a state and returns the next state, which is recorded afterwards. */
type Step = (purchase: Purchase) => Promise<Pick<Purchase, "state"> & Partial<Pick<Purchase, "hold_id">>>;

/** The command has taken effect, but its answer is kept for 24 hours only. (The requests of a key are always the same here.) */
const isForgotten = (error: unknown) => isProblem(error, "idempotency-conflict");

const columns = "user_id, purchase_id, item, price, state, hold_id";

/** Long enough for a restart. Then the hold of an abandoned purchase expires, and the player has the points again. */
const holdSeconds = 600;
const resumeMax = 50;

export function createPurchases(db: Db, todoke: Todoke) {
  const keyOf = ({ user_id, purchase_id }: Purchase) => `purchase:${user_id}:${purchase_id}`;
  const sourceOf = ({ purchase_id }: Purchase) => ({ source: "purchase", source_id: purchase_id });

  const steps: Readonly<Record<string, Step>> = {
    async NEW(purchase) {
      const { user_id, item, price: point_amount } = purchase;
      const hold = { user_id, point_amount, reason: item, ttl_seconds: holdSeconds, ...sourceOf(purchase) };
      try {
        const { hold_id } = await todoke.points.placeHold(hold, { key: keyOf(purchase) });
        return { state: "HELD", hold_id };
      } catch (error) {
        // Too few points; or the hold was placed more than a day ago, its answer is forgotten, and it has expired.
        if (isProblem(error, "insufficient-points") || isForgotten(error)) return { state: "REFUSED" };
        throw error; // Nothing is decided. The next attempt finds out, with the same key.
      }
    },
    async HELD(purchase) {
      const hold_id = purchase.hold_id ?? "";
      try {
        await todoke.points.captureHold({ hold_id, ...sourceOf(purchase) }, { key: keyOf(purchase) });
        return { state: "PAID" };
      } catch (error) {
        if (!isProblem(error, "hold-ended") && !isForgotten(error)) throw error;
        const { status } = await todoke.points.getHold({ hold_id });
        if (status === "HELD") throw error;
        return { state: status === "CAPTURED" ? "PAID" : "REFUSED" };
      }
    },
    async PAID(purchase) {
      const { user_id, purchase_id, item: stock_keeping_unit } = purchase;
      const grant = { user_id, stock_keeping_unit, reason: "purchase", purchase_id };
      await todoke.entitlements.grant(grant, { key: keyOf(purchase) });
      return { state: "GRANTED" };
    },
  };

  /** Runs the steps of a purchase to its end. After an error it keeps its state, and is resumed later. */
  async function finish(purchase: Purchase): Promise<Purchase> {
    const step = steps[purchase.state];
    return step ? finish(await record(purchase, await step(purchase))) : purchase;
  }

  /** Records a step, unless another copy of the shop has recorded one. Returns the purchase as it is now. */
  async function record(purchase: Purchase, next: Awaited<ReturnType<Step>>): Promise<Purchase> {
    const { user_id, purchase_id, state } = purchase;
    await db.query(
      `update purchases set state = $4, hold_id = coalesce($5, hold_id), updated_at = now()
        where user_id = $1 and purchase_id = $2 and state = $3`,
      [user_id, purchase_id, state, next.state, next.hold_id],
    );
    return (await find(user_id, purchase_id)) ?? purchase;
  }

  async function find(userId: string, purchaseId: string): Promise<Purchase | undefined> {
    const sql = `select ${columns} from purchases where user_id = $1 and purchase_id = $2`;
    return (await db.query<Purchase>(sql, [userId, purchaseId])).rows[0];
  }

  return {
    /** Buys an item. The same purchase again is continued. Undefined if another purchase has this ID, or has bought the item. */
    async buy(userId: string, purchaseId: string, item: string): Promise<Purchase | undefined> {
      await db.query(
        `insert into purchases (user_id, purchase_id, item, price) values ($1, $2, $3, $4) on conflict do nothing`,
        [userId, purchaseId, item, items[item]],
      );
      const purchase = await find(userId, purchaseId);
      return purchase?.item === item ? finish(purchase) : undefined;
    },

    /** Resumes purchases that have been idle for this long, the oldest first. */
    async resume(idleMs: number): Promise<void> {
      const { rows } = await db.query<Purchase>(
        `with idle as materialized (
           select user_id, purchase_id from purchases
            where state in ('NEW', 'HELD', 'PAID') and updated_at <= now() - $1 * interval '1 millisecond'
            order by updated_at limit $2 for update skip locked)
         update purchases p set updated_at = now() from idle
          where p.user_id = idle.user_id and p.purchase_id = idle.purchase_id
         returning p.user_id, p.purchase_id, item, price, state, hold_id`,
        [idleMs, resumeMax],
      );
      const results = await Promise.allSettled(rows.map(finish));
      for (const result of results) if (result.status === "rejected") console.error(`resumed later: ${result.reason}`);
    },
  };
}
