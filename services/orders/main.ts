/** What the orders service is put together from. */
import { service } from "@todoke/service";
import { limitsSlippage, openBroker } from "./brokers/index.ts";
import { acceptOrder } from "./commands/accept-order.ts";
import { cancelOrder } from "./commands/cancel-order.ts";
import { setTradingState } from "./commands/set-trading-state.ts";
import { readSettings } from "./config.ts";
import { openInstruments } from "./instruments/index.ts";
import { orderRoutes } from "./routes/index.ts";
import { startReconciler, startSender } from "./sender/index.ts";
import { cancelRequests } from "./sender/store-cancels.ts";
import { outboxOrdersTable } from "./store/outbox-orders.ts";
import { endedLedger, endedOrders } from "./store/retention.ts";
import {
  cancelTelling,
  mismatchTelling,
  senderTelling,
  tellAccepted,
  told,
  watchDrift,
  watchOrders,
} from "./telemetry.ts";

export const { configFaults, dead, events, migrate, start } = service({
  name: "orders",
  port: 8086,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  roles: ["reconciler", "sender"],
  workers: ["reconciler", "sender"],
  emits: ["orders.events"],
  tables: [
    { table: outboxOrdersTable, lookup: ["idempotency_key", "order_id", "client_order_id"] },
    { table: cancelRequests.table, lookup: ["order_row_id"] },
  ],
  retention: () => [endedOrders, endedLedger],
  async build({ settings, workers, hasRole, app, db, wakeups, wakeRelay, authenticate, use, onError, topicOf }) {
    const topics = {
      orders: topicOf("outbox_orders"),
      cancels: topicOf("cancel_requests"),
      trading: topicOf("trading_state"),
    };
    const adapter = settings.broker.kind;
    if (hasRole("maintenance")) use(watchOrders({ db, adapter, onError }));
    if (hasRole("sender") || hasRole("reconciler")) {
      const drift = use(watchDrift(adapter));
      const broker = use(await openBroker(settings.broker, { db, onDrift: drift.tell }));
      const { waitsMs, ...sending } = settings.sender;
      const settingsOf = ({ leaseMs, pollMs }: typeof workers.sender) => ({
        ...sending,
        leaseMs,
        pollMs,
        backoff: { waitsMs },
      });
      const telling = senderTelling(adapter, app.log);
      const tell = { ...telling, ended: both(telling.ended, wakeRelay) };
      if (hasRole("sender"))
        use(startSender({ db, broker, settings: settingsOf(workers.sender), wakeups, topics, tell, onError }));
      if (hasRole("reconciler")) {
        const onMismatches = mismatchTelling(adapter, app.log);
        use(startReconciler({ db, broker, settings: settingsOf(workers.reconciler), tell, onMismatches, onError }));
      }
    }
    if (hasRole("api")) {
      const instruments = openInstruments(settings.instrumentsPath);
      const { ledgerMs, keepMs, reconciledWithinMs } = settings;
      const onAccepted = both(
        both(tellAccepted, () => wakeups.signal(topics.orders)),
        wakeRelay,
      );
      const target = { adapter, limitsSlippage: limitsSlippage(settings.broker) };
      orderRoutes(app, {
        db,
        authenticate,
        acceptOrder: told(
          acceptOrder({ db, instruments, ...target, ledgerMs, keepMs, reconciledWithinMs, onAccepted }),
        ),
        cancelOrder: cancelOrder({
          db,
          onAborted: both(cancelTelling(app.log), wakeRelay),
          onRequested: () => wakeups.signal(topics.cancels),
        }),
        setTradingState: setTradingState({ db, instruments, onChanged: () => wakeups.signal(topics.trading) }),
      });
    }
  },
});

/** Calls the first with the arguments, then the second without. */
const both =
  <Args extends readonly unknown[]>(first: (...args: Args) => void, second: () => void) =>
  (...args: Args): void => {
    first(...args);
    second();
  };
