/** Defects of the work that is done in the transaction that finishes its rows. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a patch finds templates as text.
import { type Planted, slow } from "./defect.ts";

const complete = "packages/kernel/claims/complete.ts";
const direct = "packages/kernel/worker/direct.ts";

export const transactionDefects: readonly Planted[] = [
  {
    name: "complete-past-uncommitted",
    what: "A transaction completes rows without regard to order: two relays store one aggregate's events at once.",
    caughtBy: ["published-in-order", "handled-in-order"],
    broughtOutBy: { inTransactions: true, rate: 200, given: [slow("relay.moving", 50)] },
    patches: [{ file: complete, find: "limit 1) is null", replace: "limit 1) is null or true" }],
  },
  {
    name: "finish-before-work",
    what: "Rows are finished in a transaction of their own, and their work follows.",
    caughtBy: ["event-reaches-the-bus", "event-takes-effect"],
    broughtOutBy: {
      inTransactions: true,
      faults: [
        { atMs: 3_000, fault: "kill", target: "entitlement_1" },
        { atMs: 3_000, fault: "kill", target: "notification_1" },
      ],
    },
    patches: [
      {
        file: direct,
        find: "if (completed.length > 0) await runInTransaction(tx, completed);",
        replace:
          "setTimeout(() => void transaction(db, (later) => runInTransaction(later, completed)).catch(() => {}), 500);",
      },
    ],
  },
];
