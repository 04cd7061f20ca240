/** One order: its fields, its history, and the button that resolves it while it is unresolved. */

import { path } from "../api/request.ts";
import type { Order, OrderStep } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Facts, Foreign, IdLink, PageTitle, Panel, Tag, Time } from "../parts/basics.tsx";
import { ActButton } from "../parts/dialog.tsx";
import { Await } from "../parts/loaded.tsx";
import { useStaff } from "../parts/staff.ts";
import { Table } from "../parts/table.tsx";
import { useTexts } from "../texts/index.ts";

export function OrderPage({ id }: { readonly id: string }) {
  const t = useTexts();
  const { can } = useStaff();
  const order = useGet<Order>(path`/v1/orders/${id}`, { everyMs: 2_000 });
  return (
    <>
      <PageTitle title={order.data?.order_id ?? t.order}>
        {can("OPERATOR") && order.data?.in_doubt_since && <Resolve id={id} />}
      </PageTitle>
      <Await of={order}>{(data) => <OrderFacts order={data} />}</Await>
      <History id={id} />
    </>
  );
}

function Resolve({ id }: { readonly id: string }) {
  const t = useTexts();
  return (
    <ActButton
      class="primary"
      request={{
        title: t.resolve,
        text: t.resolveMeans,
        fields: [
          {
            name: "as",
            label: t.evidence,
            options: [
              ["not-taken", t.notTaken],
              ["taken", t.taken],
            ],
          },
          { name: "broker", label: t.brokerOrder, isOptional: true },
        ],
        confirm: t.resolve,
        isDangerous: true,
        toAct: ({ as, broker }, reason) => ({
          path: `${path`/v1/admin/orders/${id}`}:resolve`,
          body: { as, reason, ...(broker && { broker_order_id: broker }) },
        }),
      }}
    >
      {t.resolve}
    </ActButton>
  );
}

function OrderFacts({ order }: { readonly order: Order }) {
  const t = useTexts();
  const { side, qty, instrument, price, status, execution, filled_qty, in_doubt_since, attempts, adapter } = order;
  return (
    <Panel>
      <Facts
        rows={[
          [t.what, `${side} ${qty} ${instrument}${price ? ` @ ${price}` : ""}`],
          [
            t.state,
            <span key="state">
              <Tag>{status}</Tag> {execution}
            </span>,
          ],
          ...(in_doubt_since ? [[t.inDoubtSince, <Time key="doubt" at={in_doubt_since} />] as const] : []),
          [t.reason, <Foreign key="reason">{order.reason ?? "–"}</Foreign>],
          [t.filled, filled_qty],
          [t.broker, adapter],
          [t.brokerOrder, order.broker_order_id ?? "–"],
          [t.clientOrder, <IdLink key="client" id={order.client_order_id} />],
          [t.attempts, String(attempts)],
          [t.by, <Foreign key="by">{order.caller}</Foreign>],
          [t.player, order.user_id ? <IdLink key="player" id={order.user_id} /> : "–"],
        ]}
      />
    </Panel>
  );
}

function History({ id }: { readonly id: string }) {
  const t = useTexts();
  const history = useGet<{ history: readonly OrderStep[] }>(path`/v1/orders/${id}/history`, {
    everyMs: 2_000,
  });
  return (
    <Panel title={t.timeline}>
      <Await of={history}>
        {({ history: steps }) => (
          <Table
            label={t.timeline}
            rows={steps}
            keyOf={({ place }) => String(place)}
            columns={[
              { head: t.time, cell: ({ at }) => <Time at={at} /> },
              { head: t.state, cell: ({ to }) => <Tag>{to}</Tag> },
              { head: t.reason, cell: ({ detail, code }) => <Foreign>{detail ?? code}</Foreign> },
              { head: t.by, cell: ({ by }) => <Foreign>{by}</Foreign> },
            ]}
          />
        )}
      </Await>
    </Panel>
  );
}
