import { expect, test } from "vitest";
import { testDatabase } from "../testing/index.ts";
import { auditInTurn, readLastAudit, startAudits } from "./schedule.ts";

const finding = { rule: "nothing is missing", about: "u_1", detail: "missing" };

test("of several processes one audits in an interval, and all see what it found", async () => {
  await using t = await testDatabase();
  let runs = 0;
  const seen: unknown[] = [];
  const options = {
    db: t.db,
    name: "sample",
    intervalMs: 3_600_000,
    run: async () => {
      runs++;
      return { findings: [finding] };
    },
    onViolations: (findings: readonly unknown[]) => void seen.push(...findings),
  };
  const process = () => auditInTurn({ ...options, db: t.open() });
  expect(await readLastAudit(t.db, "sample")).toBeUndefined();
  expect(await Promise.all([process(), process()])).toEqual([false, false]);
  expect(runs).toBe(0);
  await t.db.query(`update audits set started_at = started_at - interval '1 hour'`);
  expect((await Promise.all([process(), process(), process()])).filter(Boolean)).toHaveLength(1);
  expect([runs, seen]).toEqual([1, [finding]]);
  expect(await readLastAudit(t.db, "sample")).toMatchObject({ violations: 1, findings: [finding] });
  expect(await process()).toBe(false);
});

test("an audit that fails leaves the last result, and its turn is over", async () => {
  await using t = await testDatabase();
  await t.db.query(
    `insert into audits (name, started_at, finished_at, violations) values ('sample', '2026-01-01', '2026-01-01', 3)`,
  );
  const failing = auditInTurn({
    db: t.db,
    name: "sample",
    intervalMs: 3_600_000,
    run: () => Promise.reject(new Error("the statement timed out")),
  });
  await expect(failing).rejects.toThrow("timed out");
  expect(await readLastAudit(t.db, "sample")).toMatchObject({
    violations: 3,
    finished_at: "2026-01-01T00:00:00.000000Z",
  });
});

test("a stop does not wait for an audit that runs", async () => {
  await using t = await testDatabase();
  await t.db.query(`insert into audits (name, started_at) values ('sample', '2026-01-01')`);
  const begun = Promise.withResolvers<void>();
  const run = () => {
    begun.resolve();
    return new Promise<never>(() => {});
  };
  const audits = startAudits({ db: t.db, name: "sample", intervalMs: 3_600_000, run });
  await begun.promise;
  await audits[Symbol.asyncDispose]();
});
