import { hash } from "node:crypto";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { migrate, start } from "@todoke/entitlement";
import { openInbox } from "@todoke/kernel/inbox";
import { openOutbox } from "@todoke/kernel/outbox";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { busKinds, consumer } from "./buses.ts";
import { createHarness } from "./harness.ts";

const spans = new InMemorySpanExporter();
const ended = () => spans.getFinishedSpans();

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
  "%s: request, command, publish and handling are one trace, each the child of the one before",
  async (kind) => {
    spans.reset();
    await using harness = await createHarness(kind);
    const subject = "entitlement.events";
    await using bus = await harness.openBus();
    const outbox = openOutbox();
    const inbox = openInbox<string>({
      db: harness.db,
      consumer,
      decode: (event) => event.eventId,
      // Events of an effect continue the trace.
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
      DATABASE_URL: harness.url,
      ENTITLEMENT_PORT: "0",
      LOG_LEVEL: "silent",
      TODOKE_API_KEYS: `shop=entitlements:write=${hash("sha256", "tdk_shop", "hex")}`,
    };
    await migrate(env, { dryRun: false });
    await using service = await start(env, { openBus: () => harness.openBus() });

    const response = await fetch(`${service.url}/v1/entitlements/grants`, {
      method: "POST",
      headers: {
        authorization: "Bearer tdk_shop",
        "idempotency-key": "p_456",
        "content-type": "application/json",
        traceparent: `00-${callerTrace}-${callerSpan}-01`,
      },
      body: JSON.stringify({ user_id: "u_1", stock_keeping_unit: "item1", reason: "purchase", purchase_id: "p_456" }),
    });
    expect(response.status).toBe(201);
    const followed = () => harness.db.query(`select headers from outbox_events where event_type = 'Followed'`);
    await until("the event has taken effect", async () => (await followed()).rowCount === 1);
    const { headers } = (await followed()).rows[0];
    expect(headers.trace_id).toBe(callerTrace);

    // From the follow-up event back to the caller. A span is exported when it ends.
    const names = ["inbox handle", "outbox publish", "entitlement command", "POST /v1/entitlements/grants"];
    await until("each step has ended", () => names.every((name) => ended().some((span) => span.name === name)));
    const path: string[] = [];
    let spanId: string | undefined = headers.traceparent.split("-")[2];
    for (const _ of names) {
      const span = ended().find((each) => each.spanContext().spanId === spanId);
      expect(span?.spanContext().traceId).toBe(callerTrace);
      path.push(span?.name ?? "");
      spanId = span?.parentSpanContext?.spanId;
    }
    expect([path, spanId]).toEqual([names, callerSpan]);
  },
);
