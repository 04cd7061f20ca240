/**
 * 64 clients add and spend points of four users while API processes are killed. Accepted changes are in the ledger once,
 * rejected ones are not, unanswered ones at most once; and a repeated request gets the same bytes.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "@todoke/kernel/testing";
import { auditLedger } from "@todoke/points/audit";
import { expect, test, vi } from "vitest";
import { openPoints, type PointsSetup } from "./points.ts";
import { inParallel, type PointsRequest, type PointsResponse, sendOnce } from "./points-client.ts";

// It starts and kills six processes: 15 seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000 });

const clients = 64;
const users = 4;

interface Command extends PointsRequest {
  readonly key: string;
  readonly user: string;
  readonly change: number;
}

interface Outcome extends Command {
  readonly response?: PointsResponse;
}

function createCommand(client: number, n: number): Command {
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

/** Each client sends one command after the other; every eighth is not repeated when its response is lost. */
function startClients(setup: PointsSetup) {
  const outcomes: Outcome[] = [];
  const stopping = new AbortController();
  const { signal } = stopping;
  async function send(command: Command, retries: boolean): Promise<void> {
    const response = retries
      ? await setup.client.sendUntilAnswered(command)
      : await sendOnce(setup.client.next(), command);
    outcomes.push(response && response.status < 500 ? { ...command, response } : command);
  }
  async function work(client: number): Promise<void> {
    for (let n = 0; !signal.aborted; n++) {
      const since = performance.now();
      await send(createCommand(client, n), n % 8 < 7);
      // At least as long as the command took, to leave CPU for starting processes.
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

interface LedgerEntry {
  readonly id: string;
  readonly user: string;
  readonly change: number;
}

/** Ledger entries by the key of their command. */
async function readLedger({ db }: PointsSetup): Promise<ReadonlyMap<string, readonly LedgerEntry[]>> {
  const { rows } = await db.query<LedgerEntry & { key: string }>(
    `select right(idempotency_key, 36) as key, id, user_id as "user", point_amount::int as change from point_transactions`,
  );
  return Map.groupBy(rows, ({ key }) => key);
}

function outcomeViolations({ key, user, change, response }: Outcome, entries: readonly LedgerEntry[]): string[] {
  const [first] = entries;
  if (entries.length > 1) return [`${key} is in the ledger ${entries.length} times`];
  if (first && (first.user !== user || first.change !== change)) return [`${key} is in the ledger with another change`];
  if (!response) return [];
  if (response.status === 200)
    return first?.id === JSON.parse(response.text).transaction_id
      ? []
      : [`${key} was accepted and is not in the ledger`];
  if (!response.text.includes("insufficient-points"))
    return [`${key} was answered ${response.status}: ${response.text}`];
  return first ? [`${key} was rejected and is in the ledger`] : [];
}

test("an accepted change is in the ledger once after kill -9 of API processes", async () => {
  await using setup = await openPoints({ kind: "postgres", processes: [["api"], ["api"]] });
  const load = startClients(setup);
  const steps = ["batch.starting", "transaction.commit-sent", "batch.done"];
  await setup.killAt(...steps.map((name) => ({ name, hit: 10, role: "api" }) as const));
  await using killed = await setup.start(["api"]);
  const before = load.outcomes.length;
  await until("every client has called", () => load.outcomes.length > before + 4 * clients);
  killed.signal("SIGKILL");
  await killed.exited;
  await load.stop();
  // Statements of dead processes may still be committing; their users are locked until then.
  await setup.db.query(`select from point_root for update`);

  const ledger = await readLedger(setup);
  const { outcomes } = load;
  expect(outcomes.flatMap((outcome) => outcomeViolations(outcome, ledger.get(outcome.key) ?? []))).toEqual([]);
  expect([...new Set(ledger.keys()).difference(new Set(outcomes.map(({ key }) => key)))]).toEqual([]);
  expect(await auditLedger(setup.db)).toEqual([]);
  for (const [user, theirs] of Map.groupBy(outcomes, (outcome) => outcome.user)) {
    const entries = theirs.filter(({ key }) => ledger.has(key));
    const balance = entries.reduce((sum, { change }) => sum + change, 0);
    expect(await setup.client.confirm(user)).toMatchObject({ balance, version: entries.length });
  }
  await inParallel(
    outcomes.filter(({ response }) => response?.status === 200).slice(-200),
    async ({ response, ...command }) => {
      const repeated = await setup.client.sendUntilAnswered(command);
      expect(repeated).toEqual({ ...response, isReplayed: true });
    },
  );
});
