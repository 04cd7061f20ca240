/**
 * What a grant costs without Todoke: a Fastify handler as it is usually written. It looks for an earlier answer under the
 * key, changes the entitlement, and writes event, audit and answer, each a prepared statement, between begin and commit:
 * the same rows, and no API key, no telemetry, no relay, no waiting for a parallel duplicate. And Fastify alone, and Fastify
 * behind the gateway's session check.
 */
import { randomUUIDv7 } from "node:crypto";
import type { AddressInfo } from "node:net";
import { sessionGuard } from "@todoke/gateway-bff/guard";
import { postgresSessions } from "@todoke/gateway-bff/sessions";
import { openDb } from "@todoke/kernel/db";
import { digestJson } from "@todoke/kernel/idempotency";
import fastify, { type FastifyInstance } from "fastify";
import pg from "pg";

interface Grant {
  readonly user_id: string;
  readonly stock_keeping_unit: string;
  readonly reason: string;
  readonly purchase_id: string;
}

const text = { type: "string", minLength: 1, maxLength: 256 };
const body = {
  type: "object",
  additionalProperties: false,
  required: ["user_id", "stock_keeping_unit", "reason", "purchase_id"],
  properties: { user_id: text, stock_keeping_unit: text, reason: text, purchase_id: text },
};

/** 4, 8 and 16 connections do alike here, and 32 do less. */
export async function startPlain(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: 16, options: "-c search_path=entitlement" });
  const app = fastify();
  app.post<{ Body: Grant }>("/v1/entitlements/grants", { schema: { body } }, async (request, reply) => {
    const answer = await grant(pool, String(request.headers["idempotency-key"]), request.body);
    return reply.code(answer.version === 1 ? 201 : 200).send(answer);
  });
  return listening(app, () => pool.end());
}

async function grant(pool: pg.Pool, key: string, grant: Grant) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const earlier = await client.query({
      name: "earlier",
      text: `select request_hash, response_body from idempotency_keys where scope = 'bench' and idem_key = $1`,
      values: [key],
    });
    if (earlier.rowCount) {
      await client.query("rollback");
      return repeated(earlier.rows[0], grant);
    }
    const { rows } = await client.query({
      name: "upsert",
      text: `insert into entitlements as e (user_id, stock_keeping_unit, status, source, source_id)
             values ($1, $2, 'ACTIVE', $3, $4)
             on conflict (user_id, stock_keeping_unit) do update
                set status = excluded.status, source = excluded.source, source_id = excluded.source_id,
                    version = e.version + 1, updated_at = now()
             returning version::float8 as version, updated_at`,
      values: [grant.user_id, grant.stock_keeping_unit, grant.reason, grant.purchase_id],
    });
    const { version, updated_at } = rows[0];
    const event_id = randomUUIDv7();
    const answer = { user_id: grant.user_id, stock_keeping_unit: grant.stock_keeping_unit, version, updated_at };
    await client.query({
      name: "event",
      text: `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
             values ($1, 'EntitlementGranted', 'entitlement.events', $2, $3, $4)`,
      values: [event_id, `${grant.user_id}/${grant.stock_keeping_unit}`, version, { ...answer, ...grant, event_id }],
    });
    await client.query({
      name: "audit",
      text: `insert into entitlement_audit
               (user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
             values ($1, $2, $3, 'GRANT', $4, $5, 'bench', $6)`,
      values: [grant.user_id, grant.stock_keeping_unit, version, grant.reason, grant.purchase_id, event_id],
    });
    await client.query({
      name: "answer",
      text: `insert into idempotency_keys
               (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
             values ('bench', $1, $2, 201, 'application/json', $3, now() + interval '24 hours')`,
      values: [key, digestJson(grant), Buffer.from(JSON.stringify(answer))],
    });
    await client.query("commit");
    return answer;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

function repeated(earlier: { request_hash: Buffer; response_body: Buffer }, grant: Grant) {
  if (!earlier.request_hash.equals(digestJson(grant)))
    throw Object.assign(new Error("key reused"), { statusCode: 409 });
  return JSON.parse(earlier.response_body.toString());
}

export async function startHello() {
  const app = fastify();
  app.get("/", { schema: { response: { 200: { type: "object", properties: { hello: text } } } } }, async () => ({
    hello: "world",
  }));
  return listening(app, async () => {});
}

/** The same, for who has a session of the gateway: the gateway's own check on the gateway's own tables. */
export async function startGuarded(url: string, secret: string) {
  const db = openDb({ url, schema: "gateway_bff" });
  const hourMs = 3_600_000;
  const secrets = [Buffer.from(secret, "base64url")];
  const sessions = postgresSessions(db, { idleMs: hourMs, absoluteMs: 12 * hourMs, perUserMax: 10, secrets });
  const origin = "http://localhost";
  const authenticate = sessionGuard({ sessions, origin, isLoopback: true, onRefreshDue: () => {} });
  const app = fastify();
  app.decorateRequest("session", undefined);
  const schema = { response: { 200: { type: "object", properties: { hello: text } } } };
  app.get("/", { schema, onRequest: async (request) => void (await authenticate(request)) }, async () => ({
    hello: "world",
  }));
  return listening(app, async () => {
    await sessions[Symbol.asyncDispose]();
    await db.end();
  });
}

async function listening(app: FastifyInstance, after: () => Promise<void>) {
  await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      await app.close();
      await after();
    },
  };
}
