/** Puts the service together: the only file here that starts anything. */
import { encodeOutboxEvent } from "@todoke/contracts";
import { deadOutboxEvents, outboxTable, relay } from "@todoke/kernel/outbox";
import { keepClean, retentionOf } from "@todoke/kernel/retention";
import { outboxRoutes, service } from "@todoke/service";
import { limitsSlippage, openBroker } from "./brokers/index.ts";
import { acceptOrder } from "./commands/accept-order.ts";
import { cancelOrder } from "./commands/cancel-order.ts";
import { setTradingState } from "./commands/set-trading-state.ts";
import { readSettings } from "./config.ts";
import { openInstruments } from "./instruments/index.ts";
import { orderRoutes } from "./routes/index.ts";
import { startReconciler, startSender } from "./sender/index.ts";
import { endedLedger, endedOrders } from "./store/retention.ts";
import {
  cancelTelling,
  mismatchTelling,
  outboxTelemetry,
  senderTelling,
  tellAccepted,
  told,
  watchDrift,
  watchOrders,
} from "./telemetry.ts";

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
      use(watchOrders({ db, adapter, onError }));
    }
    if (does("relay")) {
      const about = { name: "orders relay", db, bus, encode: encodeOutboxEvent, settings: workerSettings };
      use(
        relay({ ...about, wakeups, topic: eventsTopic, onError, onPublished: outboxTelemetry.tellPublished }),
      ).start();
    }
    if (does("sender") || does("reconciler")) {
      const drift = use(watchDrift(adapter));
      const broker = use(await openBroker(settings.broker, { db, onDrift: drift.tell }));
      const { waitsMs, ...sending } = settings.sender;
      const { leaseMs, pollMs } = workerSettings;
      const telling = senderTelling(adapter, app.log);
      const tell = { ...telling, ended: after(telling.ended, wakeRelay) };
      const about = { db, broker, settings: { ...sending, leaseMs, pollMs, backoff: { waitsMs } }, tell, onError };
      if (does("sender")) use(startSender({ ...about, wakeups, topics }));
      if (does("reconciler")) use(startReconciler({ ...about, onMismatches: mismatchTelling(adapter, app.log) }));
    }
    if (does("api")) {
      const instruments = openInstruments(settings.instrumentsPath);
      const { ledgerMs, keepMs, reconciledWithinMs } = settings;
      const onAccepted = (orders: number) => {
        tellAccepted(orders);
        wakeups.signal(topics.orders);
        wakeRelay();
      };
      const target = { adapter, limitsSlippage: limitsSlippage(settings.broker) };
      orderRoutes(app, {
        db,
        authenticate,
        acceptOrder: told(
          acceptOrder({ db, instruments, ...target, ledgerMs, keepMs, reconciledWithinMs, onAccepted }),
        ),
        cancelOrder: cancelOrder({
          db,
          onAborted: after(cancelTelling(app.log), wakeRelay),
          onRequested: () => wakeups.signal(topics.cancels),
        }),
        setTradingState: setTradingState({ db, instruments, onChanged: () => wakeups.signal(topics.trading) }),
      });
    }
    debug((on) => outboxRoutes(on, { db, onRedriven: wakeRelay }));
  },
});

/** The same, and then something that takes no heed of what it was called with. */
const after =
  <Args extends readonly unknown[]>(first: (...args: Args) => void, then: () => void) =>
  (...args: Args): void => {
    first(...args);
    then();
  };
