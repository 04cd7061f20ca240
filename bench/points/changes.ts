/** Points added and spent over HTTP, by random users and by one user. Baseline: pgbench with the same changes. */
import { sendConcurrently } from "../load.ts";
import { type Contender, measureInTurns, ratio } from "../measure.ts";
import type { Result } from "../report.ts";
import { startService } from "../start-service.ts";
import { assertLedgerBalances, changeRequest, fillAccounts, openDatabase, users } from "./accounts.ts";
import { clients, type Operation, pgbenchChanges, type UserChoice } from "./pgbench-changes.ts";

const connections = 64;
const requests = 20_000;
const pgbenchSeconds = 4;

const randomUser = () => `u_${1 + Math.floor(Math.random() * users)}`;
let newUsers = 0;

const nextUser: Readonly<Record<`${Operation} ${UserChoice}`, () => string>> = {
  "add distinct users": () => `new_${++newUsers}`,
  "sub distinct users": randomUser,
  "add one hot user": () => "hot",
  "sub one hot user": () => "hot",
};

const cases: readonly (readonly [Operation, UserChoice])[] = [
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
  const contenders = cases.flatMap(([operation, userChoice]): Contender[] => [
    {
      name: `${operation}, ${userChoice}: pgbench, one prepared statement, ${clients} clients`,
      run: async () =>
        pgbenchSeconds *
        (await pgbenchChanges({ url: forPgbench.url, operation, userChoice, seconds: pgbenchSeconds })),
      seconds: pgbenchSeconds,
    },
    {
      name: `${operation}, ${userChoice}: the service, API only`,
      run: () =>
        sendConcurrently({
          url,
          nextRequest: () => changeRequest(operation, nextUser[`${operation} ${userChoice}`]()),
          connections,
          requests,
        }),
    },
  ]);
  for (const { run } of contenders) await run(); // Warm-up: the first requests pay for compilation.
  const figures = await measureInTurns("points", contenders);
  await assertLedgerBalances(forService.open("points", 1));
  const [, add, , sub, , addHot, , subHot] = figures;
  const pgbenchRatios = cases.map(([operation, userChoice], index) => [
    `${operation}, ${userChoice} / pgbench`,
    ratio(figures[2 * index + 1], figures[2 * index]),
  ]);
  return {
    title: `points added and spent over HTTP by ${connections} connections, 1 point per request: auth, schema, telemetry and outbox on`,
    figures,
    summary: {
      ...Object.fromEntries(pgbenchRatios),
      "add, one hot user / distinct users": ratio(addHot, add),
      "sub, one hot user / distinct users": ratio(subHot, sub),
    },
  };
}
