import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { transaction } from "@todoke/kernel/db";
import { openInbox } from "@todoke/kernel/inbox";
import { openOutbox, relay } from "@todoke/kernel/outbox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { busKinds, consumer, subject } from "./buses.ts";
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

test.each(busKinds)(
  "%s: request, publish and handling are one trace, each the child of the one before",
  async (kind) => {
    spans.reset();
    await using stage = await setStage(kind);
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

    await trace.getTracer("test").startActiveSpan("request", async (request) => {
      await transaction(stage.db, (tx) =>
        outbox.append(tx, { eventType: "Happened", subject, aggregateKey: "a", version: 1, payload: {} }),
      );
      request.end();
    });
    await relay({ db: stage.db, bus }).runOnce();
    await expect.poll(() => spans.getFinishedSpans().map((span) => span.name)).toContain("inbox handle");

    const [request, publish, handle] = ["request", "outbox publish", "inbox handle"].map((name) =>
      spans.getFinishedSpans().find((span) => span.name === name),
    );
    const traceId = request?.spanContext().traceId;
    expect([publish, handle].map((span) => span?.spanContext().traceId)).toEqual([traceId, traceId]);
    expect(publish?.parentSpanContext?.spanId).toBe(request?.spanContext().spanId);
    expect(handle?.parentSpanContext?.spanId).toBe(publish?.spanContext().spanId);
    const { rows } = await stage.db.query(`select headers from outbox_events where event_type = 'Followed'`);
    expect(rows[0].headers).toMatchObject({
      trace_id: traceId,
      traceparent: `00-${traceId}-${handle?.spanContext().spanId}-01`,
    });
  },
);
