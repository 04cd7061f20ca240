/**
 * Baselines for the services: a typical Fastify handler for a grant, Fastify hello-world, and hello-world behind the
 * gateway's session check. The grant handler writes the same rows as the entitlement service, one prepared statement at a
 * time in a transaction, without API key, telemetry, relay and the wait for a concurrent duplicate.
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

const textSchema = { type: "string", minLength: 1, maxLength: 256 };
const body = {
  type: "object",
  additionalProperties: false,
  required: ["user_id", "stock_keeping_unit", "reason", "purchase_id"],
  properties: { user_id: textSchema, stock_keeping_unit: textSchema, reason: textSchema, purchase_id: textSchema },
};

/** 4, 8 and 16 connections give the same throughput, 32 less. */
export async function startPlain(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: 16, options: "-c search_path=entitlement" });
  const app = fastify();
  app.post<{ Body: Grant }>("/v1/entitlements/grants", { schema: { body } }, async (request, reply) => {
    const response = await grant(pool, String(request.headers["idempotency-key"]), request.body);
    return reply.code(response.version === 1 ? 201 : 200).send(response);
  });
  return listen(app, () => pool.end());
}

async function grant(pool: pg.Pool, key: string, grant: Grant) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const storedResponse = await client.query({
      name: "stored response",
      text: `select request_hash, response_body from idempotency_keys where scope = 'bench' and idem_key = $1`,
      values: [key],
    });
    if (storedResponse.rowCount) {
      await client.query("rollback");
      return replay(storedResponse.rows[0], grant);
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
    const response = { user_id: grant.user_id, stock_keeping_unit: grant.stock_keeping_unit, version, updated_at };
    await client.query({
      name: "event",
      text: `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
             values ($1, 'EntitlementGranted', 'entitlement.events', $2, $3, $4)`,
      values: [event_id, `${grant.user_id}/${grant.stock_keeping_unit}`, version, { ...response, ...grant, event_id }],
    });
    await client.query({
      name: "audit",
      text: `insert into entitlement_audit
               (user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
             values ($1, $2, $3, 'GRANT', $4, $5, 'bench', $6)`,
      values: [grant.user_id, grant.stock_keeping_unit, version, grant.reason, grant.purchase_id, event_id],
    });
    await client.query({
      name: "insert response",
      text: `insert into idempotency_keys
               (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
             values ('bench', $1, $2, 201, 'application/json', $3, now() + interval '24 hours')`,
      values: [key, digestJson(grant), Buffer.from(JSON.stringify(response))],
    });
    await client.query("commit");
    return response;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

function replay(storedResponse: { request_hash: Buffer; response_body: Buffer }, grant: Grant) {
  if (!storedResponse.request_hash.equals(digestJson(grant)))
    throw Object.assign(new Error("the idempotency key was used with another body"), { statusCode: 409 });
  return JSON.parse(storedResponse.response_body.toString());
}

export async function startHello() {
  const app = fastify();
  app.get("/", { schema: { response: { 200: { type: "object", properties: { hello: textSchema } } } } }, async () => ({
    hello: "world",
  }));
  return listen(app, async () => {});
}

/** Hello-world behind the gateway's own session check, on the gateway's own tables. */
export async function startGuarded(url: string, secret: string) {
  const db = openDb({ url, schema: "gateway_bff" });
  const hourMs = 3_600_000;
  const secrets = [Buffer.from(secret, "base64url")];
  const sessions = postgresSessions(db, { idleMs: hourMs, absoluteMs: 12 * hourMs, perUserMax: 10, secrets });
  const origin = "http://localhost";
  const authenticate = sessionGuard({ sessions, origin, isLoopback: true, onRefreshDue: () => {} });
  const app = fastify();
  app.decorateRequest("session", undefined);
  const schema = { response: { 200: { type: "object", properties: { hello: textSchema } } } };
  app.get(
    "/",
    { schema, onRequest: async (request, reply) => void (await authenticate(request, reply)) },
    async () => ({
      hello: "world",
    }),
  );
  return listen(app, async () => {
    await sessions[Symbol.asyncDispose]();
    await db.end();
  });
}

async function listen(app: FastifyInstance, after: () => Promise<void>) {
  await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      await app.close();
      await after();
    },
  };
}
