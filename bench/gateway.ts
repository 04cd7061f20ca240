/**
 * The most frequent reads through the gateway, compared with a Fastify hello-world behind the same session check. The
 * gateway and each service are separate processes, with limits, telemetry and tokens on. A read costs CPU time of them and of
 * PostgreSQL; that figure also holds on a machine that has other work.
 */
import { randomBytes } from "node:crypto";
import { migrate as migrateAccount } from "@todoke/account";
import { migrate as migrateGateway } from "@todoke/gateway-bff";
import { postgresSessions } from "@todoke/gateway-bff/sessions";
import { formatSigningKey, formatVerifyingKey, newSigningKey, openSigner, toVerifyingKey } from "@todoke/http";
import { migrate as migrateMatchmaking } from "@todoke/matchmaking";
import { migrate as migratePoints } from "@todoke/points";
import { type BenchDatabase, openDatabase } from "./databases.ts";
import { sendConcurrently } from "./load.ts";
import { type Contender, measureInTurns, median, percentile, ratio, round } from "./measure.ts";
import { familyCpuMicroseconds, findPostmaster } from "./process-cpu.ts";
import type { Result } from "./report.ts";
import { type Service, type ServiceKind, startService } from "./start-service.ts";

const users = 1_000;
const connections = 64;

/** A quick run is for work on the gateway itself: fewer requests, one round. */
export async function gatewayReads(postgresUrl: string, { quick = false } = {}): Promise<Result> {
  const [requests, roundsMax] = quick ? [6_000, 1] : [20_000, 3];
  await using started = new AsyncDisposableStack();
  const database = started.use(
    await openDatabase(postgresUrl, migrateAccount, migrateGateway, migratePoints, migrateMatchmaking),
  );
  const key = newSigningKey("bench");
  const common = {
    DATABASE_URL: database.url,
    // Nothing happens that a worker would do.
    ...Object.fromEntries(
      ["ACCOUNT", "ENTITLEMENT", "MATCHMAKING", "NOTIFICATION", "POINTS"].map((n) => [`${n}_ROLES`, "api"]),
    ),
    TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
  };
  const running: Service[] = [];
  const start = async (kind: ServiceKind, more: Record<string, string> = {}) => {
    const service = started.use(await startService(kind, { ...common, ...more }));
    running.push(service);
    return service;
  };
  const account = await start("account");
  const secret = randomBytes(32);
  const gateway = await start("gateway-bff", {
    ACCOUNT_URL: account.url,
    ENTITLEMENT_URL: (await start("entitlement")).url,
    MATCHMAKING_URL: (await start("matchmaking")).url,
    NOTIFICATION_URL: (await start("notification")).url,
    POINTS_URL: (await start("points")).url,
    GATEWAY_BFF_TOKEN_KEY: formatSigningKey(key),
    GATEWAY_BFF_SECRET: secret.toString("base64url"),
    GATEWAY_BFF_LIMIT_READ: "1000000/1s", // Never reached, but counted.
    GATEWAY_BFF_LIMIT_ADDRESS: "1000000/1s",
    OIDC_ISSUER: "http://127.0.0.1:9", // Never called: no login happens here.
    OIDC_CLIENT_ID: "bench",
    EVENT_BUS_URL: database.url,
  });
  const guarded = await start("guarded", { BENCH_SECRET: secret.toString("base64url") });

  const { tokenFor } = openSigner({ issuer: "gateway-bff", key });
  const players = await createPlayers({ database, accountUrl: account.url, token: await tokenFor("account"), secret });
  const randomPlayer = () => players[Math.floor(Math.random() * players.length)] as Player;
  const getRequest = (path: (player: Player) => string) => () => {
    const player = randomPlayer();
    return `GET ${path(player)} HTTP/1.1\r\nHost: bench\r\nCookie: todoke=${player.token}\r\n\r\n`;
  };
  const postmaster = await findPostmaster(database.open("gateway_bff", 1));
  const cpuMicroseconds = async () => {
    const all = await Promise.all([
      familyCpuMicroseconds(postmaster),
      ...running.map((service) => service.cpuMicroseconds()),
    ]);
    return all.reduce((sum, each) => sum + each, 0);
  };
  const p99s: number[][] = [];
  const cpuCosts: number[][] = [];
  const httpContender = (name: string, url: string, nextRequest: () => string): Contender => {
    const [rounds, costs]: [number[], number[]] = [[], []];
    p99s.push(rounds);
    cpuCosts.push(costs);
    return {
      name,
      async run() {
        const durationsMs: number[] = [];
        const before = await cpuMicroseconds();
        await sendConcurrently({ url, nextRequest, connections, requests, durationsMs });
        costs.push(((await cpuMicroseconds()) - before) / requests);
        rounds.push(percentile(durationsMs, 0.99));
        return requests;
      },
    };
  };
  const contenders = [
    httpContender(
      "Fastify hello-world behind the same session check",
      guarded.url,
      getRequest(() => "/"),
    ),
    httpContender(
      "GET /v1/me",
      gateway.url,
      getRequest(() => "/v1/me"),
    ),
    httpContender(
      "GET /v1/users/{id}/profile, of account, entitlement, points and matchmaking",
      gateway.url,
      getRequest(({ userId }) => `/v1/users/${userId}/profile`),
    ),
  ];
  for (const contender of contenders) await contender.run(); // Warm-up: the first requests pay for compilation.
  for (const rounds of [...p99s, ...cpuCosts]) rounds.length = 0;
  const figures = await measureInTurns("gateway reads", contenders, roundsMax);
  const [hello, me, profile] = figures;
  const [helloMs = 0, meMs = 0, profileMs = 0] = p99s.map((rounds) => round(median(rounds)));
  const [helloUs = 0, meUs = 0, profileUs = 0] = cpuCosts.map((costs) => Math.round(median(costs)));
  return {
    title: `gateway reads by ${connections} connections, ${users.toLocaleString("en")} sessions`,
    figures,
    summary: {
      "me / hello-world behind the same session check": ratio(me, hello),
      "profile / hello-world behind the same session check": ratio(profile, hello),
      "CPU per request of hello-world, µs": helloUs,
      "CPU per request of me, µs": meUs,
      "CPU per request of profile, µs": profileUs,
      "p99 of hello-world, ms": helloMs,
      "p99 of me, ms": meMs,
      "p99 of profile, ms": profileMs,
      "p99 of me / p99 of hello-world": round(meMs / helloMs),
      "p99 of profile / p99 of hello-world": round(profileMs / helloMs),
    },
    targets: {
      "me / hello-world behind the same session check": "at least 0.45, aim 0.7",
      "profile / hello-world behind the same session check": "at least 0.18, aim 0.3",
    },
  };
}

interface Player {
  readonly userId: string;
  readonly token: string;
}

interface PlayerSetup {
  readonly database: BenchDatabase;
  readonly accountUrl: string;
  readonly token: string;
  readonly secret: Buffer;
}

/** Creates users as a login does, each with three entitlements and a session. */
async function createPlayers({ database, accountUrl, token, secret }: PlayerSetup): Promise<Player[]> {
  const hourMs = 3_600_000;
  const settings = { idleMs: hourMs, absoluteMs: 12 * hourMs, perUserMax: 10, secrets: [secret] };
  await using sessions = postgresSessions(database.open("gateway_bff"), settings);
  const players: Player[] = [];
  for (let n = 0; n < users; n++) {
    const response = await fetch(`${accountUrl}/identities:resolve`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ provider: "https://bench.example", subject: `s${n}`, display_name: `Player ${n}` }),
    });
    const { user_id: userId, version } = (await response.json()) as { user_id: string; version: number };
    await sessions.saveUser({ userId, status: "ACTIVE", roles: ["USER"], version });
    const tokens = { idToken: "none", accessToken: "none" };
    const session = { client: "browser", issuer: "https://bench.example", subject: `s${n}`, tokens } as const;
    players.push({ userId, token: (await sessions.create({ userId, ...session })).token });
  }
  await database.open("entitlement").query(
    `insert into entitlements (user_id, stock_keeping_unit, status, source, source_id)
     select user_id, 'item' || i, 'ACTIVE', 'purchase', 'p_1' from unnest($1::text[]) user_id, generate_series(1, 3) i`,
    [players.map(({ userId }) => userId)],
  );
  return players;
}
