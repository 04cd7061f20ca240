/** Defects of the points service: its ledger, reservations and recurring grants. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a patch finds templates as text.
import { deadly, type Planted } from "./defect.ts";

const runSchedule = "services/points/commands/run-due-schedule.ts";
const services = ["points"];

export const pointsDefects: readonly Planted[] = [
  {
    name: "answer-before-commit",
    what: "A change of points is answered when its statements have run, and not when they are committed.",
    caughtBy: ["accepted-is-done"],
    broughtOutBy: { services, given: [deadly("planted.gap")] },
    patches: [
      {
        file: "services/points/commands/change-points.ts",
        find: "const results = await transaction(db, (tx) => postChanges(tx, requests));",
        replace: `const results = await new Promise<readonly PostResult[]>((resolve, reject) => {
        const committed = transaction(db, async (tx) => {
          const posted = await postChanges(tx, requests);
          setTimeout(resolve, 0, posted);
          await new Promise((later) => setTimeout(later, 50));
          await reach("planted.gap");
        });
        committed.catch(reject);
      });`,
      },
    ],
  },
  {
    name: "event-of-the-last",
    what: "Only the last change of each user in a batch gets an event.",
    caughtBy: ["event-per-change"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/points/commands/post-changes.ts",
        find: "return transactions.flatMap((transaction) => {",
        replace: `return transactions.filter((each, n) => !transactions.some((later, m) => m > n && later.userId === each.userId)).flatMap((transaction) => {`,
      },
    ],
  },
  {
    name: "cancel-always-succeeds",
    what: "Cancelling a reservation is answered with success whatever its status is.",
    caughtBy: ["accepted-is-done"],
    broughtOutBy: { services, forMs: 8_000, rate: 120 },
    patches: [
      {
        file: "services/points/commands/cancel-reservation.ts",
        find: 'if (status !== "PENDING")',
        replace: 'if (status === "FAILED")',
      },
    ],
  },
  {
    name: "due-within-the-second",
    what: "A reservation is due when its second has begun, and not at its time: it is granted up to a second early.",
    caughtBy: ["not-before-its-time"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/points/store/dispatch-reservations.ts",
        find: "where status = 'PENDING' and execute_at <= now() and execute_at < 'infinity'\n   order by execute_at, id limit (",
        replace:
          "where status = 'PENDING' and execute_at <= date_trunc('second', now()) + interval '1 second' and execute_at < 'infinity'\n   order by execute_at, id limit (",
      },
    ],
  },
  {
    name: "cursor-before-users",
    what: "The progress of a recurring grant is committed before its reservations: after a crash, users have none.",
    caughtBy: ["occurrence-is-complete"],
    broughtOutBy: { services, forMs: 9_000, given: [deadly("planted.gap", 1)] },
    patches: [
      {
        file: runSchedule,
        find: "if (cron) await runBatch(tx, { schedule, cron, batchMax });",
        replace: "if (cron) await runBatch(tx, { schedule, cron, batchMax, db });",
      },
      {
        file: runSchedule,
        find: "  readonly batchMax: number;\n}",
        replace: "  readonly batchMax: number;\n  readonly db: Db;\n}",
      },
      {
        file: runSchedule,
        find: "{ schedule, cron, batchMax }: Batch)",
        replace: "{ schedule, cron, batchMax, db }: Batch)",
      },
      {
        file: runSchedule,
        find: "const { users, last } = await insertOccurrence(tx, {",
        replace: `const { users, last } = await insertLater(db, {`,
      },
      {
        file: runSchedule,
        find: "const isDue = (",
        replace: `function insertLater(db: Db, occurrence: Parameters<typeof insertOccurrence>[1]) {
  const insert = () => transaction(db, (tx) => insertOccurrence(tx, occurrence));
  setTimeout(() => void reach("planted.gap").then(insert), 100);
  return { users: 0, last: null };
}

const isDue = (`,
      },
    ],
  },
  {
    name: "holds-never-expire",
    what: "Only expired lots are looked for: the hold of a user whom nothing else changes is never returned.",
    caughtBy: ["becomes-quiet"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/points/store/users-with-expired.ts",
        find: "where status = 'HELD' and ends_at <= statement_timestamp()",
        replace: "where status = 'HELD' and ends_at <= statement_timestamp() - interval '1 day'",
      },
    ],
  },
];
