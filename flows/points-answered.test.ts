/**
 * Sixty-four clients add and spend points of a few users while the processes that answer them are killed with -9. What was
 * answered is in the ledger once, as it was answered; what was refused is not; what was never answered is there once or not
 * at all; and whoever asks again is answered with the same bytes.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "@todoke/kernel/testing";
import { auditLedger } from "@todoke/points/audit";
import { expect, test, vi } from "vitest";
import { openPoints, type PointsSetup } from "./points.ts";
import { type Answer, type Ask, askOnce, inParallel } from "./points-client.ts";

// It starts and kills half a dozen processes: a quarter of a minute at rest, and minutes where others want the machine too.
vi.setConfig({ testTimeout: 600_000 });

const clients = 64;
const users = 4;

interface Command extends Ask {
  readonly key: string;
  readonly user: string;
  readonly change: number;
}

interface Outcome extends Command {
  readonly answer?: Answer;
}

function commandOf(client: number, n: number): Command {
  const isSpend = (client + n) % 2 === 0;
  const [user, amount] = [`c_${client % users}`, isSpend ? 7 : 10];
  return {
    method: "PUT",
    path: isSpend ? "/point/sub" : "/point/add",
    body: { user_id: user, point_amount: amount },
    key: randomUUID(),
    user,
    change: isSpend ? -amount : amount,
  };
}

/** Each sends one command after the other until it is told to stop; of some it does not ask again what became of them. */
function startClients(setup: PointsSetup) {
  const outcomes: Outcome[] = [];
  const stopping = new AbortController();
  const { signal } = stopping;
  async function send(command: Command, isPatient: boolean): Promise<void> {
    const answer = isPatient ? await setup.client.ask(command) : await askOnce(setup.client.next(), command);
    outcomes.push(answer && answer.status < 500 ? { ...command, answer } : command);
  }
  async function work(client: number): Promise<void> {
    for (let n = 0; !signal.aborted; n++) {
      const since = performance.now();
      await send(commandOf(client, n), n % 8 < 7);
      // As long as it took, where that is long: so that there is room for processes to start between.
      await sleep(Math.max(250, performance.now() - since), undefined, { signal }).catch(() => {});
    }
  }
  const working = Promise.all(Array.from({ length: clients }, (_, client) => work(client)));
  working.catch(() => {});
  return {
    outcomes,
    async stop() {
      stopping.abort();
      await working;
    },
  };
}

interface Booked {
  readonly id: string;
  readonly user: string;
  readonly change: number;
}

/** The ledger, by the keys of the commands. */
async function ledgerOf({ db }: PointsSetup): Promise<ReadonlyMap<string, readonly Booked[]>> {
  const { rows } = await db.query<Booked & { key: string }>(
    `select right(idempotency_key, 36) as key, id, user_id as "user", point_amount::int as change from point_transactions`,
  );
  return Map.groupBy(rows, ({ key }) => key);
}

function faultsOf({ key, user, change, answer }: Outcome, booked: readonly Booked[]): string[] {
  const [first] = booked;
  if (booked.length > 1) return [`${key} is in the ledger ${booked.length} times`];
  if (first && (first.user !== user || first.change !== change)) return [`${key} is in the ledger as something else`];
  if (!answer) return [];
  if (answer.status === 200)
    return first?.id === JSON.parse(answer.text).transaction_id
      ? []
      : [`${key} was answered, and is not in the ledger`];
  if (!answer.text.includes("insufficient-points")) return [`${key} was answered ${answer.status}: ${answer.text}`];
  return first ? [`${key} was refused, and is in the ledger`] : [];
}

test("kill -9 of those who answer: what was answered is in the ledger once", async () => {
  await using setup = await openPoints({ kind: "postgres", processes: [["api"], ["api"]] });
  const asking = startClients(setup);
  const steps = ["batch.starting", "transaction.commit-sent", "batch.done"];
  await setup.dieAt(...steps.map((name) => ({ name, hit: 10, role: "api" }) as const));
  await using doomed = await setup.start(["api"]);
  const before = asking.outcomes.length;
  await until("everybody has called", () => asking.outcomes.length > before + 4 * clients);
  doomed.signal("SIGKILL");
  await doomed.exited;
  await asking.stop();
  // What the dead had sent may still be committing: their users are locked until it has.
  await setup.db.query(`select from point_root for update`);

  const ledger = await ledgerOf(setup);
  const { outcomes } = asking;
  expect(outcomes.flatMap((outcome) => faultsOf(outcome, ledger.get(outcome.key) ?? []))).toEqual([]);
  expect([...new Set(ledger.keys()).difference(new Set(outcomes.map(({ key }) => key)))]).toEqual([]);
  expect(await auditLedger(setup.db)).toEqual([]);
  for (const [user, theirs] of Map.groupBy(outcomes, (outcome) => outcome.user)) {
    const booked = theirs.filter(({ key }) => ledger.has(key));
    const balance = booked.reduce((sum, { change }) => sum + change, 0);
    expect(await setup.client.confirm(user)).toMatchObject({ balance, version: booked.length });
  }
  await inParallel(
    outcomes.filter(({ answer }) => answer?.status === 200).slice(-200),
    async ({ answer, ...command }) => {
      const again = await setup.client.ask(command);
      expect(again).toEqual({ ...answer, isReplayed: true });
    },
  );
});
