/** Defects of the work that is done in the transaction that finishes its rows. */
import type { Planted } from "./defect.ts";

const direct = "packages/kernel/worker/direct.ts";

export const transactionDefects: readonly Planted[] = [
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
