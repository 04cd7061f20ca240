/** Defects of claims, leases and settlements. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a patch finds templates as text.
import { type Planted, repeatedly, slow } from "./defect.ts";

const statements = "packages/kernel/claims/statements.ts";
const claimer = "packages/kernel/worker/claimer.ts";
const worker = "packages/kernel/worker/index.ts";
const loop = "packages/kernel/worker/loop.ts";
const inFlightJobs = "packages/kernel/worker/in-flight-jobs.ts";

const fence = "and t.${c.epoch} = ($2::jsonb ->> t.${key}::text)::bigint`";

export const claimDefects: readonly Planted[] = [
  {
    name: "no-fence",
    what: "A settlement names the row and not the claim: a worker that was stopped settles a row that another has claimed.",
    caughtBy: ["only-the-holder-settles"],
    broughtOutBy: {
      given: [slow("sender.sending", 2_000)],
      faults: [{ atMs: 3_000, fault: "pause", target: "notification_1", forMs: 3_500 }],
    },
    patches: [{ file: statements, find: fence, replace: "and $2::jsonb is not null`" }],
  },
  {
    name: "fence-by-host",
    what: "The fence is locked_by, and locked_by is the host: two workers of one host pass each other's fence.",
    caughtBy: ["only-the-holder-settles"],
    broughtOutBy: {
      given: [slow("sender.sending", 2_000)],
      faults: [{ atMs: 3_000, fault: "pause", target: "notification_1", forMs: 3_500 }],
    },
    patches: [
      { file: statements, find: "c.${c.epoch}::text as claim_epoch", replace: "c.${c.lockedBy} as claim_epoch" },
      { file: statements, find: fence, replace: "and t.${c.lockedBy} = ($2::jsonb ->> t.${key}::text)`" },
      {
        file: claimer,
        find: 'const id = `${name}@${hostname()}:${process.pid}:${randomBytes(3).toString("hex")}`;',
        replace: "const id = `${name}@${hostname()}`;",
      },
    ],
  },
  {
    name: "claim-without-lock",
    what: "A claim selects rows and then updates them without locking them: two workers claim the same row.",
    caughtBy: ["lease-is-respected"],
    patches: [
      {
        file: statements,
        find: "order by t.${position} limit $1 - (select count(*) from expired_leases) for update skip locked",
        replace: "order by t.${position} limit $1 - (select count(*) from expired_leases)",
      },
      {
        file: statements,
        find: "order by t.${c.dueAt} limit $1 - (select count(*) from expired_leases) for update skip locked",
        replace: "order by t.${c.dueAt} limit $1 - (select count(*) from expired_leases)",
      },
    ],
  },
  {
    name: "claim-in-limit",
    what: "A claim is `where key in (select … limit n for update skip locked)`: run once per row, it claims all rows.",
    caughtBy: ["claim-within-limit"],
    broughtOutBy: { rate: 200, given: [slow("sender.claimed", 1_500)] },
    patches: [
      {
        file: statements,
        find: "where t.${t.key} = any(array(select key from due))",
        replace: `where \${t.order ? \`t.\${t.key} = any(array(select key from due))\`
     : \`\${isReady(t)} and t.\${c.dueAt} <= \${now} and t.\${t.key} in (
         select t.\${t.key} from \${t.table} t where \${inQueue(t)}\${isReady(t)} and t.\${c.dueAt} <= \${now}
          order by t.\${c.dueAt} limit $1 for update skip locked)\`}`,
      },
    ],
  },
  {
    name: "attempt-at-failure",
    what: "An attempt is counted when it fails, not when it starts: a job that kills its process is retried without end.",
    caughtBy: ["claim-counts"],
    patches: [
      { file: statements, find: "${c.attempts} = t.${c.attempts} + 1,", replace: "" },
      {
        file: statements,
        find: "c.${c.attempts}::int as claim_attempt",
        replace: "c.${c.attempts}::int + 1 as claim_attempt",
      },
      {
        file: statements,
        find: "case when ${field(\"outcome\")} = 'release' then t.${c.attempts} - 1",
        replace: "case when ${field(\"outcome\")} = 'retry' then t.${c.attempts} + 1",
      },
    ],
  },
  {
    name: "app-clock",
    what: "The worker's clock decides whether a lease has expired: a worker with a fast clock claims rows of others.",
    caughtBy: ["lease-is-respected"],
    broughtOutBy: {
      given: [slow("sender.sending", 200)],
      faults: [{ atMs: 2_000, fault: "clock skew", target: "notification_1", detail: { skewMs: 3_600_000 } }],
    },
    patches: [
      {
        file: "packages/kernel/claims/index.ts",
        find: "{ name: `claim ${name}`, text: sql.claim, values }",
        replace:
          "{ text: sql.claim.replaceAll(\"statement_timestamp()\", `'${new Date().toISOString()}'::timestamptz`), values }",
      },
    ],
  },
  {
    name: "lease-not-renewed",
    what: "Leases are not renewed: a job that takes longer than its lease runs in two workers.",
    caughtBy: ["lease-is-kept", "sent-once-per-claim"],
    broughtOutBy: { given: [{ name: "sender.sending", action: "delay", hit: 5, ms: 4_000 }] },
    patches: [
      {
        file: worker,
        find: 'renewal = setInterval(() => void inFlight.renew().catch((error) => failed("renew", error)), leaseMs / 3);',
        replace: "",
      },
    ],
  },
  {
    name: "lapsed-stays-lapsed",
    what: "Only ready rows are claimed: rows of a killed worker are never claimed again.",
    caughtBy: ["becomes-quiet", "killed-work-resumes"],
    broughtOutBy: {
      given: [slow("sender.sending", 500)],
      faults: [{ atMs: 3_000, fault: "kill", target: "notification_1" }],
    },
    patches: [
      {
        file: statements,
        find: "and t.${c.leaseUntil} <= ${now}`)}",
        replace: "and t.${c.leaseUntil} <= ${now} and false`)}",
      },
    ],
  },
  {
    name: "order-not-asked",
    what: "A claim takes due rows without regard to order: two relays publish one aggregate's events at once.",
    caughtBy: ["published-in-order", "handled-in-order"],
    broughtOutBy: { given: [slow("relay.publishing", 50)] },
    patches: [
      { file: statements, find: "${t.order ? orderedDue(t) : unorderedDue(t)},", replace: "${unorderedDue(t)}," },
    ],
  },
  {
    name: "cursor-by-position",
    what: "The relay continues after the highest position that it has published: events that commit late are never published.",
    caughtBy: ["event-reaches-the-bus", "becomes-quiet"],
    patches: [
      {
        file: statements,
        find: "and t.${aggregate} not in (select b.${aggregate} from blocked_aggregates b)`)}",
        replace:
          "and t.${position} > coalesce((select max(x.${position}) from ${t.table} x where x.${c.doneAt} is not null), 0)`)}",
      },
    ],
  },
  {
    name: "wake-up-only",
    what: "A worker sleeps until it is woken and never polls: after a lost wake-up, its work waits.",
    caughtBy: ["becomes-quiet"],
    // Late, when no other event's wake-up can stand in for this one.
    broughtOutBy: { given: [{ name: "sender.sending", action: "throw", hit: 30, ms: 12_000 }] },
    patches: [
      {
        file: loop,
        find: "if (waitMs > pause) await woken.wait(waitMs - pause);",
        replace: "if (waitMs > pause) await woken.wait();",
      },
      { file: worker, find: "setTimeout(wake, Math.ceil(delayMs) + 1).unref();", replace: "{}" },
    ],
  },
  {
    name: "stop-without-release",
    what: "At SIGTERM a worker stops at once and releases nothing: its rows wait until their leases expire.",
    caughtBy: ["stopped-work-resumes"],
    broughtOutBy: {
      given: [slow("sender.sending", 1_000)],
      faults: [{ atMs: 3_000, fault: "terminate", target: "notification_1" }],
    },
    patches: [
      { file: worker, find: "await inFlight.drained(drainMs);", replace: "" },
      { file: worker, find: "if (inFlight.size > 0) await inFlight.abandon(1_000);", replace: "" },
    ],
  },
  {
    name: "settled-whatever-became",
    what: "A batch is settled as done at its end, although some of its jobs failed.",
    caughtBy: ["event-reaches-the-bus", "notification-is-sent"],
    broughtOutBy: { faults: repeatedly("publish request lost", "entitlement_1", { at: "bus publish" }) },
    patches: [
      {
        file: inFlightJobs,
        find: "const reported = await running.catch((error) =>",
        replace: 'const reported: Outcome = await running.then(() => ({ kind: "done" as const }), (error) =>',
      },
    ],
  },
];
