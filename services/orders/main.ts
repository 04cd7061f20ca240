/** Puts the service together. Only this file starts anything. */
import { encodeOutboxEvent } from "@todoke/contracts";
import { outboxRoutes, service } from "@todoke/http";
import { deadOutboxEvents, outboxTable, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { limitsSlippage, openBroker } from "./brokers/index.ts";
import { acceptOrder } from "./commands/accept-order.ts";
import { cancelOrder } from "./commands/cancel-order.ts";
import { setTradingState } from "./commands/set-trading-state.ts";
import { setTradingStateOfInstrument } from "./commands/set-trading-state-of-instrument.ts";
import { readSettings } from "./config.ts";
import { openInstruments } from "./instruments/index.ts";
import { orderRoutes } from "./routes/index.ts";
import { endedLedger, endedOrders } from "./store/retention.ts";
import {
  countAccepted,
  countCommands,
  logMismatches,
  observeClockDrift,
  observeOrders,
  outboxTelemetry,
  recordCancelled,
  senderTelemetry,
} from "./telemetry.ts";
import { startReconciler } from "./workers/reconcile.ts";
import { startSender } from "./workers/start-sender.ts";

export const { configFaults, dead, migrate, start } = service({
  name: "orders",
  port: 8086,
  migrations: new URL("./migrations/", import.meta.url),
  roles: ["api", "reconciler", "relay", "sender", "upkeep"],
  settings: readSettings,
  dead: [deadOutboxEvents],
  async build({ settings, workerSettings, does, app, db, bus, wakeups, authenticate, use, debug, onError, topicOf }) {
    const eventsTopic = topicOf(outboxTable);
    const topics = {
      orders: topicOf("outbox_orders"),
      cancels: topicOf("cancel_requests"),
      trading: topicOf("trading_state"),
    };
    const wakeRelay = () => wakeups.signal(eventsTopic);
    const adapter = settings.broker.kind;
    if (does("upkeep")) {
      const policies = [endedOrders, endedLedger, retentionOf.publishedEvents()];
      use(keepClean(db, policies, { onError }));
      use(outboxTelemetry.watch(db, onError));
      use(observeOrders({ db, adapter, onError }));
    }
    if (does("relay")) {
      const about = { name: "orders relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(
        relay({ ...about, wakeups, topic: eventsTopic, onError, onPublished: outboxTelemetry.tellPublished }),
      ).start();
    }
    if (does("sender") || does("reconciler")) {
      const drift = use(observeClockDrift(adapter));
      const broker = use(await openBroker(settings.broker, { db, onDrift: drift.record }));
      const { leaseMs, pollMs } = workerSettings;
      const recorded = senderTelemetry(adapter, app.log);
      const telemetry = { ...recorded, transitioned: after(recorded.transitioned, wakeRelay) };
      const options = { db, broker, settings: { ...settings.sender, leaseMs, pollMs }, telemetry, onError };
      if (does("sender")) use(startSender({ ...options, wakeups, topics }));
      if (does("reconciler")) use(startReconciler({ ...options, onMismatches: logMismatches(adapter, app.log) }));
    }
    if (does("api")) {
      const instruments = openInstruments(settings.instrumentsPath);
      const { ledgerMs, keepMs, reconciledWithinMs } = settings;
      const onAccepted = (orders: number) => {
        countAccepted(orders);
        wakeups.signal(topics.orders);
        wakeRelay();
      };
      const target = { adapter, limitsSlippage: limitsSlippage(settings.broker) };
      const trading = { db, onChanged: () => wakeups.signal(topics.trading) };
      orderRoutes(app, {
        db,
        authenticate,
        acceptOrder: countCommands(
          acceptOrder({ db, instruments, ...target, ledgerMs, keepMs, reconciledWithinMs, onAccepted }),
        ),
        cancelOrder: cancelOrder({
          db,
          onAborted: after(recordCancelled(app.log), wakeRelay),
          onRequested: () => wakeups.signal(topics.cancels),
        }),
        setTradingState: setTradingState(trading),
        setTradingStateOfInstrument: setTradingStateOfInstrument({ ...trading, instruments }),
      });
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
  },
});

/** Calls one function after the other. */
const after =
  <Args extends readonly unknown[]>(first: (...args: Args) => void, then: () => void) =>
  (...args: Args): void => {
    first(...args);
    then();
  };
