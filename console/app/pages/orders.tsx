/** Orders: the trading state, unresolved orders, all orders, and the reconciliations with the broker. */
import { Link } from "wouter-preact";
import { path, withQuery } from "../api/request.ts";
import type { Order, OrderList, Reconciliation, TradingState } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Empty, Foreign, IdLink, PageTitle, Panel, ShortId, Tag, Time } from "../parts/basics.tsx";
import { ActButton } from "../parts/dialog.tsx";
import { Filters } from "../parts/filters.tsx";
import { LastAuditPanel } from "../parts/last-audit.tsx";
import { Await } from "../parts/loaded.tsx";
import { Paging } from "../parts/paging.tsx";
import { useStaff } from "../parts/staff.ts";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

const live = { everyMs: 5_000 };

export function Orders() {
  const t = useTexts();
  return (
    <>
      <PageTitle title={t.nav.orders} />
      <Trading />
      <Unresolved />
      <AllOrders />
      <Reconciliations />
      <LastAuditPanel service="orders" />
    </>
  );
}

function Trading() {
  const t = useTexts();
  const { can } = useStaff();
  const states = useGet<{ states: readonly TradingState[] }>("/v1/orders/trading-state", live);
  return (
    <Panel title={t.trading} actions={can("OPERATOR") && states.data && <Switch states={states.data.states} />}>
      <Await of={states}>
        {({ states: rows }) =>
          rows.length === 0 ? (
            <Empty>{t.tradingActive}</Empty>
          ) : (
            <Table
              label={t.trading}
              rows={rows}
              keyOf={({ scope }) => scope}
              columns={[
                { head: t.scope, cell: ({ scope }) => (scope === "*" ? t.allInstruments : scope) },
                { head: t.state, cell: ({ mode }) => <Tag>{mode}</Tag> },
                { head: t.reason, cell: ({ reason }) => <Foreign>{reason}</Foreign> },
                { head: t.by, cell: ({ set_by }) => <Foreign>{set_by}</Foreign> },
                { head: t.deadSince, cell: ({ set_at }) => <Time at={set_at} /> },
              ]}
            />
          )
        }
      </Await>
    </Panel>
  );
}

/** Stopping is quick. Starting again is slow: the scope is typed, and the login must be fresh. */
function Switch({ states }: { readonly states: readonly TradingState[] }) {
  const t = useTexts();
  const mode = states.find(({ scope }) => scope === "*")?.mode ?? "active";
  const set = (wanted: TradingState["mode"], text: string) => ({
    title: t.setTrading[wanted],
    text,
    confirm: t.setTrading[wanted],
    isDangerous: wanted !== "active",
    ...(wanted === "active" && { typeToConfirm: t.allInstruments }),
    toAct: (_values: object, reason: string) => ({
      method: "PUT" as const,
      path: "/v1/orders/trading-state",
      body: { mode: wanted, reason },
    }),
  });
  return (
    <>
      {mode !== "halt" && (
        <ActButton class="danger" request={set("halt", t.haltMeans)}>
          {t.setTrading.halt}
        </ActButton>
      )}
      {mode === "active" && (
        <ActButton request={set("cancel-only", t.cancelOnlyMeans)}>{t.setTrading["cancel-only"]}</ActButton>
      )}
      {mode !== "active" && <ActButton request={set("active", t.resumeMeans)}>{t.setTrading.active}</ActButton>}
    </>
  );
}

function Unresolved() {
  const t = useTexts();
  const list = useGet<OrderList>("/v1/orders/unresolved?limit=50", live);
  return (
    <Panel title={t.inDoubt}>
      <Await of={list}>
        {({ orders }) => (orders.length === 0 ? <Empty>{t.noneInDoubt}</Empty> : <OrderRows orders={orders} />)}
      </Await>
    </Panel>
  );
}

function AllOrders() {
  const t = useTexts();
  const [{ status, instrument, order_id, cursor }] = useQueryParams();
  const filter = { status, instrument, order_id };
  const list = useGet<OrderList>(withQuery("/v1/orders", { ...filter, limit: 50, cursor }), live);
  return (
    <Panel title={t.allOrders}>
      <Filters
        fields={[
          ["order_id", t.orderId],
          ["instrument", t.instrument],
          ["status", t.state],
        ]}
      />
      <Await of={list}>
        {({ orders, next_cursor }) => (
          <>
            {orders.length === 0 ? (
              <Empty>{Object.values(filter).some(Boolean) ? t.noHits : t.noOrders}</Empty>
            ) : (
              <OrderRows orders={orders} />
            )}
            <Paging next={next_cursor} />
          </>
        )}
      </Await>
    </Panel>
  );
}

export function OrderRows({ orders }: { readonly orders: readonly Order[] }) {
  const t = useTexts();
  return (
    <Table
      label={t.nav.orders}
      rows={orders}
      keyOf={({ id }) => id}
      columns={[
        {
          head: t.order,
          cell: ({ id, order_id }) => (
            <Link class="strong" href={path`/orders/${id}`}>
              <Foreign>{order_id}</Foreign>
            </Link>
          ),
        },
        {
          head: t.what,
          cell: ({ side, qty, instrument, price }) => `${side} ${qty} ${instrument}${price ? ` @ ${price}` : ""}`,
        },
        { head: t.state, cell: ({ status }) => <Tag>{status}</Tag> },
        { head: t.inDoubtSince, cell: ({ in_doubt_since }) => <Time at={in_doubt_since} /> },
        {
          head: t.reason,
          cell: ({ reason }) => (
            <span class="clip">
              <Foreign>{reason}</Foreign>
            </span>
          ),
        },
        { head: t.player, cell: ({ user_id }) => (user_id ? <ShortId id={user_id} /> : <span class="muted">–</span>) },
      ]}
    />
  );
}

function Reconciliations() {
  const t = useTexts();
  const books = useGet<{ reconciliations: readonly Reconciliation[] }>("/v1/admin/orders/reconciliations", {
    everyMs: 30_000,
  });
  return (
    <Panel title={t.books}>
      <Await of={books}>
        {({ reconciliations }) =>
          reconciliations.length === 0 ? <Empty>{t.notCompared}</Empty> : <BookRows reconciliations={reconciliations} />
        }
      </Await>
    </Panel>
  );
}

function BookRows({ reconciliations }: { readonly reconciliations: readonly Reconciliation[] }) {
  const t = useTexts();
  const differences = reconciliations.flatMap(({ adapter, details }) => details.map((each) => ({ adapter, ...each })));
  return (
    <>
      <Table
        label={t.books}
        rows={reconciliations}
        keyOf={({ adapter }) => adapter}
        columns={[
          { head: t.broker, cell: ({ adapter }) => adapter },
          { head: t.lastOk, cell: ({ last_ok_at }) => <Time at={last_ok_at} /> },
          { head: t.seen, align: "end", cell: ({ seen }) => seen.toLocaleString(t.locale) },
          {
            head: t.mismatches,
            align: "end",
            cell: ({ mismatches }) => (
              <span class={mismatches > 0 ? "error-text strong" : ""}>{mismatches.toLocaleString(t.locale)}</span>
            ),
          },
          { head: t.error, cell: ({ last_error }) => <Foreign>{last_error}</Foreign> },
        ]}
      />
      {differences.length > 0 && (
        <Table
          label={t.mismatches}
          rows={differences}
          keyOf={({ adapter, clientOrderId, kind, detail }) => [adapter, clientOrderId, kind, detail].join(" ")}
          columns={[
            { head: t.clientOrder, cell: ({ clientOrderId }) => <IdLink id={clientOrderId} /> },
            { head: t.mismatches, cell: ({ kind }) => t.mismatchKinds[kind] ?? kind },
            { head: t.details, cell: ({ detail }) => <Foreign>{detail}</Foreign> },
          ]}
        />
      )}
    </>
  );
}
