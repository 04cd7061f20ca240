/** Puts the orders service together. */
import { service } from "@todoke/service";
import { brokerSchemas, limitsSlippage, openBroker } from "./brokers/index.ts";
import { acceptOrder } from "./commands/accept-order.ts";
import { cancelAllOrders } from "./commands/cancel-all-orders.ts";
import { cancelOrder } from "./commands/cancel-order.ts";
import { resolveOrderAsStaff } from "./commands/resolve-order.ts";
import { setTradingState } from "./commands/set-trading-state.ts";
import { setTradingStateOfInstrument } from "./commands/set-trading-state-of-instrument.ts";
import { readSettings } from "./config.ts";
import { exposureLimits, marketsOf, openInstruments } from "./instruments/index.ts";
import { orderRoutes } from "./routes/index.ts";
import { ordersAudit } from "./store/audit-rules.ts";
import { readOrderDelays, readOrderNeeds } from "./store/backlog.ts";
import { cancelRequests } from "./store/cancel-requests.ts";
import { followedOrders } from "./store/order-fills.ts";
import { outboxOrdersTable } from "./store/outbox-orders.ts";
import { endedLedger, endedOrders } from "./store/retention.ts";
import { orderLookups } from "./store/why.ts";
import {
  countAccepted,
  countCommands,
  logMismatches,
  observeClockDrift,
  observeOrders,
  observeWaiting,
  recordCancelled,
  senderTelemetry,
} from "./telemetry.ts";
import { startReconciler } from "./workers/reconcile.ts";
import { startSender } from "./workers/start-sender.ts";

export const { audits, configErrors, dead, delays, events, migrate, start, why } = service({
  name: "orders",
  port: 8086,
  migrations: new URL("./migrations/", import.meta.url),
  moreSchemas: brokerSchemas,
  settings: readSettings,
  roles: ["reconciler", "sender"],
  workers: ["canceller", "checker", "follower", "reconciler", "sender"],
  emits: ["orders.events"],
  tables: [
    { table: outboxOrdersTable, lookup: ["idempotency_key", "order_id", "client_order_id"] },
    { table: cancelRequests.table, lookup: ["order_row_id"] },
    { table: followedOrders.table, lookup: ["order_row_id"] },
  ],
  delays: readOrderDelays,
  needs: readOrderNeeds,
  retention: () => [endedOrders, endedLedger],
  audited: ordersAudit,
  explains: orderLookups,
  async build({ settings, workers, hasRole, app, db, wakeups, wakeRelay, authenticate, use, onError, topicOf }) {
    const topics = {
      orders: topicOf("outbox_orders"),
      cancels: topicOf("cancel_requests"),
      trading: topicOf("trading_state"),
    };
    const adapter = settings.broker.kind;
    const instruments = openInstruments(settings.instrumentsPath);
    if (hasRole("maintenance")) {
      use(observeOrders({ db, adapter, onError }));
      use(observeWaiting({ db, onError }));
    }
    if (hasRole("sender") || hasRole("reconciler")) {
      const drift = use(observeClockDrift(adapter));
      const broker = use(
        await openBroker(settings.broker, { db, markets: marketsOf(instruments), onDrift: drift.record }),
      );
      const recorded = senderTelemetry(adapter, app.log);
      const telemetry = { ...recorded, transitioned: after(recorded.transitioned, wakeRelay) };
      const optionsOf = ({ leaseMs, pollMs }: typeof workers.sender) => ({
        db,
        broker,
        settings: { ...settings.sender, leaseMs, pollMs },
        telemetry,
        onError,
      });
      if (hasRole("sender")) use(startSender({ ...optionsOf(workers.sender), timings: workers, wakeups, topics }));
      if (hasRole("reconciler"))
        use(startReconciler({ ...optionsOf(workers.reconciler), onMismatches: logMismatches(adapter, app.log) }));
    }
    if (hasRole("api")) {
      const { ledgerMs, keepMs, reconciledWithinMs } = settings;
      const onAccepted = (orders: number) => {
        countAccepted(orders);
        wakeups.signal(topics.orders);
        wakeRelay();
      };
      const target = { adapter, limitsSlippage: limitsSlippage(settings.broker) };
      const cancelling = {
        db,
        onAborted: after(recordCancelled(app.log), wakeRelay),
        onRequested: () => wakeups.signal(topics.cancels),
      };
      const trading = { db, onChanged: () => wakeups.signal(topics.trading) };
      orderRoutes(app, {
        db,
        authenticate,
        acceptOrder: countCommands(
          acceptOrder({ db, instruments, ...target, ledgerMs, keepMs, reconciledWithinMs, onAccepted }),
        ),
        cancelOrder: cancelOrder(cancelling),
        cancelAllOrders: cancelAllOrders(cancelling),
        limitsOf: exposureLimits(instruments),
        resolveOrderAsStaff: resolveOrderAsStaff(db, () => {
          wakeups.signal(topics.orders);
          wakeRelay();
        }),
        setTradingState: setTradingState(trading),
        setTradingStateOfInstrument: setTradingStateOfInstrument({ ...trading, instruments }),
      });
    }
  },
});

/** Calls one function after the other. */
const after =
  <Args extends readonly unknown[]>(first: (...args: Args) => void, then: () => void) =>
  (...args: Args): void => {
    first(...args);
    then();
  };
