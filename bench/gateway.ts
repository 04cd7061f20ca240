/**
 * What players ask for most, through the gateway, beside a Fastify that finds the same session in the same store and says
 * hello. Each service is a process of its own, and so is the gateway; all is on: limits, telemetry, tokens, the rules.
 */
import { randomBytes } from "node:crypto";
import { migrate as migrateAccount } from "@todoke/account";
import { migrate as migrateGateway } from "@todoke/gateway-bff";
import { postgresSessions } from "@todoke/gateway-bff/sessions";
import { formatSigningKey, formatVerifyingKey, newSigningKey, openSigner, toVerifyingKey } from "@todoke/http";
import { type BenchDatabase, openDatabase } from "./databases.ts";
import { crowd } from "./load.ts";
import { type Contender, median, percentile, race } from "./measure.ts";
import { type Kind, ratio, round, startService } from "./pipeline.ts";
import type { Result } from "./report.ts";

const users = 1_000;
const connections = 64;
const requests = 20_000;

export async function playersAtTheGateway(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(postgresUrl));
  for (const migrate of [migrateAccount, migrateGateway])
    await migrate({ DATABASE_URL: database.url }, { dryRun: false });
  const key = newSigningKey("bench");
  const common = {
    DATABASE_URL: database.url,
    TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
  };
  const start = async (kind: Kind, more: Record<string, string> = {}) =>
    started.use(await startService(kind, { ...common, ...more }));
  const account = await start("account");
  const secret = randomBytes(32);
  const gateway = await start("gateway-bff", {
    ACCOUNT_URL: account.url,
    ENTITLEMENT_URL: (await start("entitlement")).url,
    NOTIFICATION_URL: (await start("notification")).url,
    GATEWAY_BFF_TOKEN_KEY: formatSigningKey(key),
    GATEWAY_BFF_SECRET: secret.toString("base64url"),
    GATEWAY_BFF_LIMIT_READ: "1000000/1s", // They are counted all the same.
    GATEWAY_BFF_LIMIT_ADDRESS: "1000000/1s",
    OIDC_ISSUER: "http://127.0.0.1:9", // Nobody logs in here.
    OIDC_CLIENT_ID: "bench",
    EVENT_BUS_URL: database.url,
  });
  const guarded = await start("guarded", { BENCH_SECRET: secret.toString("base64url") });

  const { tokenFor } = openSigner({ issuer: "gateway-bff", key });
  const players = await makePlayers({ database, accountUrl: account.url, token: await tokenFor("account"), secret });
  const anybody = () => players[Math.floor(Math.random() * players.length)] as Player;
  const ask = (path: (player: Player) => string) => () => {
    const player = anybody();
    return `GET ${path(player)} HTTP/1.1\r\nHost: bench\r\nCookie: todoke=${player.token}\r\n\r\n`;
  };
  const p99s: number[][] = [];
  const by = (name: string, url: string, next: () => string): Contender => {
    const rounds: number[] = [];
    p99s.push(rounds);
    return {
      name,
      async run() {
        const took: number[] = [];
        await crowd({ url, next, connections, requests, took });
        rounds.push(percentile(took, 0.99));
        return requests;
      },
    };
  };
  const contenders = [
    by(
      "Fastify hello-world behind the same session check",
      guarded.url,
      ask(() => "/"),
    ),
    by(
      "GET /v1/me",
      gateway.url,
      ask(() => "/v1/me"),
    ),
    by(
      "GET /v1/users/{id}/profile",
      gateway.url,
      ask(({ userId }) => `/v1/users/${userId}/profile`),
    ),
  ];
  for (const contender of contenders) await contender.run(); // Warm: the first thousands pay for the compiler.
  for (const rounds of p99s) rounds.length = 0;
  const figures = await race("players at the gateway", contenders);
  const [hello, me, profile] = figures;
  const [helloMs = 0, meMs = 0, profileMs = 0] = p99s.map((rounds) => round(median(rounds)));
  return {
    title: `players at the gateway by ${connections} connections, ${users.toLocaleString("en")} sessions`,
    figures,
    ratios: {
      "me / hello-world behind the same session check": ratio(me, hello),
      "profile / hello-world behind the same session check": ratio(profile, hello),
      "p99 of hello-world, ms": helloMs,
      "p99 of me, ms": meMs,
      "p99 of profile, ms": profileMs,
      "p99 of me / of hello-world": round(meMs / helloMs),
      "p99 of profile / of hello-world": round(profileMs / helloMs),
    },
  };
}

interface Player {
  readonly userId: string;
  readonly token: string;
}

interface Makers {
  readonly database: BenchDatabase;
  readonly accountUrl: string;
  readonly token: string;
  readonly secret: Buffer;
}

/** Users as log-ins make them, each with three products and a session. */
async function makePlayers({ database, accountUrl, token, secret }: Makers): Promise<Player[]> {
  const hourMs = 3_600_000;
  const settings = { idleMs: hourMs, absoluteMs: 12 * hourMs, perUserMax: 10, secrets: [secret] };
  await using sessions = postgresSessions(database.open("gateway_bff"), settings);
  const players: Player[] = [];
  for (let n = 0; n < users; n++) {
    const answer = await fetch(`${accountUrl}/identities:resolve`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ provider: "https://bench.example", subject: `s${n}`, display_name: `Player ${n}` }),
    });
    const { user_id: userId, version } = (await answer.json()) as { user_id: string; version: number };
    await sessions.saveUser({ userId, status: "ACTIVE", roles: ["USER"], version });
    const tokens = { idToken: "none", accessToken: "none" };
    const about = { client: "browser", issuer: "https://bench.example", subject: `s${n}`, tokens } as const;
    players.push({ userId, token: (await sessions.create({ userId, ...about })).token });
  }
  await database.open("entitlement").query(
    `insert into entitlements (user_id, stock_keeping_unit, status, source, source_id)
     select user_id, 'item' || i, 'ACTIVE', 'purchase', 'p_1' from unnest($1::text[]) user_id, generate_series(1, 3) i`,
    [players.map(({ userId }) => userId)],
  );
  return players;
}
