import { hash } from "node:crypto";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { migrate, start } from "@todoke/entitlement";
import { openInbox } from "@todoke/kernel/inbox";
import { openOutbox } from "@todoke/kernel/outbox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { busKinds, consumer } from "./buses.ts";
import { setStage } from "./stage.ts";

const spans = new InMemorySpanExporter();

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }));
});
afterAll(() => {
  trace.disable();
  context.disable();
});

const callerTrace = "0af7651916cd43dd8448eb211c80319c";
const callerSpan = "b7ad6b7169203331";

test.each(busKinds)(
  "%s: HTTP request, command, publish and handling are one trace, each the child of the one before",
  async (kind) => {
    spans.reset();
    await using stage = await setStage(kind);
    const subject = "entitlement.events";
    await using bus = await stage.openBus();
    const outbox = openOutbox();
    const inbox = openInbox<string>({
      db: stage.db,
      consumer,
      read: (event) => event.eventId,
      // What an effect emits goes on in the same trace.
      effect: (tx, [id]) =>
        outbox.append(tx, {
          eventType: "Followed",
          subject: "later.events",
          aggregateKey: String(id),
          version: 1,
          payload: {},
        }),
    });
    await using _ = await bus.subscribe({ consumer, subjects: [subject], handle: inbox.handle });
    const env = {
      DATABASE_URL: stage.url,
      ENTITLEMENT_PORT: "0",
      LOG_LEVEL: "silent",
      TODOKE_API_KEYS: `shop=entitlements:write=${hash("sha256", "tdk_shop", "hex")}`,
    };
    await migrate(env, { dryRun: false });
    await using service = await start(env, { openBus: () => stage.openBus() });

    const answer = await fetch(`${service.url}/v1/entitlements/grants`, {
      method: "POST",
      headers: {
        authorization: "Bearer tdk_shop",
        "idempotency-key": "p_456",
        "content-type": "application/json",
        traceparent: `00-${callerTrace}-${callerSpan}-01`,
      },
      body: JSON.stringify({ user_id: "u_1", stock_keeping_unit: "item1", reason: "purchase", purchase_id: "p_456" }),
    });
    expect(answer.status).toBe(201);
    await expect
      .poll(() => spans.getFinishedSpans().map((span) => span.name), { timeout: 10_000 })
      .toContain("inbox handle");

    const way = ["POST /v1/entitlements/grants", "entitlement command", "outbox publish", "inbox handle"].map((name) =>
      spans.getFinishedSpans().find((span) => span.name === name),
    );
    expect(way.map((span) => span?.spanContext().traceId)).toEqual(way.map(() => callerTrace));
    const ids = way.map((span) => span?.spanContext().spanId);
    expect(way.map((span) => span?.parentSpanContext?.spanId)).toEqual([callerSpan, ...ids.slice(0, -1)]);
    const { rows } = await stage.db.query(`select headers from outbox_events where event_type = 'Followed'`);
    expect(rows[0].headers).toMatchObject({
      trace_id: callerTrace,
      traceparent: `00-${callerTrace}-${ids.at(-1)}-01`,
    });
  },
);
