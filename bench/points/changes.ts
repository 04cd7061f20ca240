/** Points added and spent over HTTP, of users in no order and of one alone, beside pgbench of the same changes. */
import { crowd } from "../load.ts";
import { type Contender, race } from "../measure.ts";
import { ratio, startService } from "../pipeline.ts";
import type { Result } from "../report.ts";
import { assertAddsUp, change, fillAccounts, openDatabase, users } from "./accounts.ts";
import { clients, pgbenchChanges, type What, type Whom } from "./by-pgbench.ts";

const connections = 64;
const requests = 20_000;
const pgbenchSeconds = 4;

const somebody = () => `u_${1 + Math.floor(Math.random() * users)}`;
let newcomers = 0;

const userOf: Readonly<Record<`${What} ${Whom}`, () => string>> = {
  "add distinct users": () => `new_${++newcomers}`,
  "sub distinct users": somebody,
  "add one hot user": () => "hot",
  "sub one hot user": () => "hot",
};

const kinds: readonly (readonly [What, Whom])[] = [
  ["add", "distinct users"],
  ["sub", "distinct users"],
  ["add", "one hot user"],
  ["sub", "one hot user"],
];

export async function changesOverHttp(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const [forPgbench, forService] = [await openDatabase(postgresUrl), await openDatabase(postgresUrl)];
  for (const database of [forPgbench, forService]) await fillAccounts(started.use(database).open("points", 1));
  const { url } = started.use(await startService("points", { DATABASE_URL: forService.url, POINTS_ROLES: "api" }));
  const contenders = kinds.flatMap(([what, whom]): Contender[] => [
    {
      name: `${what}, ${whom}: pgbench, one prepared statement, ${clients} clients`,
      run: async () =>
        pgbenchSeconds * (await pgbenchChanges({ url: forPgbench.url, what, whom, seconds: pgbenchSeconds })),
      seconds: pgbenchSeconds,
    },
    {
      name: `${what}, ${whom}: the service, relay apart`,
      run: () => crowd({ url, next: () => change(what, userOf[`${what} ${whom}`]()), connections, requests }),
    },
  ]);
  for (const { run } of contenders) await run(); // Warm: the first thousands pay for the compiler.
  const figures = await race("points", contenders);
  await assertAddsUp(forService.open("points", 1));
  const [, add, , sub, , addHot, , subHot] = figures;
  const toPgbench = kinds.map(([what, whom], place) => [
    `${what}, ${whom} / pgbench`,
    ratio(figures[2 * place + 1], figures[2 * place]),
  ]);
  return {
    title: `points added and spent over HTTP by ${connections} connections, a point each: auth, schema, telemetry and outbox on`,
    figures,
    ratios: {
      ...Object.fromEntries(toPgbench),
      "add, one hot user / distinct users": ratio(addHot, add),
      "sub, one hot user / distinct users": ratio(subHot, sub),
    },
  };
}
