/** The notifications of each event type: which users get one, and its text. Templates use nothing but the event. */
import type { Event, EventType } from "@todoke/contracts";

export interface Text {
  readonly en: string;
  readonly ja: string;
}

/** Values for programs. The text is for people, and its wording may change. */
export type Data = Readonly<Record<string, string | number>>;

export interface NotificationDraft {
  readonly user_id: string;
  readonly text: Text;
  readonly data?: Data;
}

/** An event without drafts is marked processed and creates no notification. */
type Templates = { readonly [Type in EventType]: (event: Event<Type>) => readonly NotificationDraft[] };

const templates: Templates = {
  EntitlementGranted: ({ userId, stockKeepingUnit }) =>
    draft(userId, {
      en: `You can now use ${stockKeepingUnit}.`,
      ja: `${stockKeepingUnit} をご利用いただけるようになりました。`,
    }),
  EntitlementRevoked: ({ userId, stockKeepingUnit }) =>
    draft(userId, {
      en: `You can no longer use ${stockKeepingUnit}.`,
      ja: `${stockKeepingUnit} はご利用いただけなくなりました。`,
    }),
  EntitlementExpired: ({ userId, stockKeepingUnit }) =>
    draft(userId, {
      en: `Your access to ${stockKeepingUnit} has expired.`,
      ja: `${stockKeepingUnit} のご利用期間が終了しました。`,
    }),
  AccountCreated: ({ userId }) =>
    draft(userId, {
      en: "Welcome! Your account is ready.",
      ja: "ようこそ。アカウントの準備ができました。",
    }),
  AccountSuspended: ({ userId, reason, suspendedUntil }) => {
    const until = suspendedUntil && formatMinute(suspendedUntil);
    return draft(userId, {
      en: `Your account is suspended${until ? ` until ${until}` : ""}. Reason: ${reason}`,
      ja: `アカウントが${until ? ` ${until} まで` : ""}停止されました。理由: ${reason}`,
    });
  },
  AccountReinstated: ({ userId }) =>
    draft(userId, {
      en: "Your account can be used again.",
      ja: "アカウントを再びご利用いただけます。",
    }),
  // Roles concern admins only, and a deleted user has no inbox to read.
  AccountRolesChanged: () => [],
  AccountDeleted: () => [],
  MatchMade: ({ matchId, mode, players }) => {
    const text = { en: `Your match in ${mode} is ready.`, ja: `${mode} のマッチが成立しました。` };
    return players.flatMap(({ userId, ticketId, team }) =>
      draft(userId, text, { ticket_id: ticketId, match_id: matchId, mode, team: Number(team) }),
    );
  },
  TicketExpired: ({ userId, ticketId, mode, reason }) => {
    const text = {
      en: `No match was found in ${mode}. You can queue again.`,
      ja: `${mode} のマッチは成立しませんでした。もう一度お並びいただけます。`,
    };
    return draft(userId, text, { ticket_id: ticketId, mode, reason });
  },
  PointsGranted: (event) => {
    const { userId, pointAmount, balance, expiresAt } = event;
    const until = expiresAt && formatMinute(expiresAt);
    const text = {
      en: `You got ${formatPoints(pointAmount)}${until ? `, to be used by ${until}` : ""}. You now have ${formatPoints(balance)}.`,
      ja: `${pointAmount} ポイントを獲得しました${until ? `（有効期限 ${until}）` : ""}。残高は ${balance} ポイントです。`,
    };
    return draft(userId, text, pointsData(event));
  },
  PointsSpent: (event) => {
    const { userId, pointAmount, balance } = event;
    const text = {
      en: `You spent ${formatPoints(pointAmount)}. You now have ${formatPoints(balance)}.`,
      ja: `${pointAmount} ポイントを使用しました。残高は ${balance} ポイントです。`,
    };
    return draft(userId, text, pointsData(event));
  },
  PointsExpired: (event) => {
    const { userId, pointAmount, balance } = event;
    const text = {
      en: `${formatPoints(pointAmount)} of yours expired. You now have ${formatPoints(balance)}.`,
      ja: `${pointAmount} ポイントの有効期限が切れました。残高は ${balance} ポイントです。`,
    };
    return draft(userId, text, pointsData(event));
  },
  // The reason is for operators. The user learns that the points are late and that we know.
  PointReservationFailed: ({ userId, reservationId, pointAmount }) => {
    const text = {
      en: `${formatPoints(pointAmount)} that you were due could not be granted. We are looking into it.`,
      ja: `付与予定の ${pointAmount} ポイントを付与できませんでした。確認しております。`,
    };
    return draft(userId, text, { reservation_id: reservationId, point_amount: String(pointAmount) });
  },
  // Nothing has happened yet; the grant that follows has a notification.
  PointReservationDue: () => [],
  OrderAccepted: (order) =>
    orderDraft(order, {
      en: `Your order ${order.orderId} was accepted and will be sent.`,
      ja: `ご注文 ${order.orderId} を受け付けました。`,
    }),
  OrderSucceeded: (order) =>
    orderDraft(order, {
      en: `The broker has taken your order ${order.orderId}.`,
      ja: `ご注文 ${order.orderId} が取引先に受理されました。`,
    }),
  OrderFailed: (order) =>
    orderDraft(order, {
      en: `Your order ${order.orderId} failed (${order.reasonCode}). It will not be sent again.`,
      ja: `ご注文 ${order.orderId} は成立しませんでした（${order.reasonCode}）。再送はされません。`,
    }),
  OrderFilled: (order) =>
    orderDraft(order, {
      en: `${order.fillQty} of your order ${order.orderId} was filled at ${order.fillPrice}: ${order.filledQty} of ${order.qty} so far.`,
      ja: `ご注文 ${order.orderId} のうち ${order.fillQty} が ${order.fillPrice} で約定しました（約定済み ${order.filledQty} / ${order.qty}）。`,
    }),
  OrderUnresolved: (order) =>
    orderDraft(order, {
      en: `We do not know yet whether the broker has taken your order ${order.orderId}. We are checking; do not order it again.`,
      ja: `ご注文 ${order.orderId} が受理されたか確認中です。重ねてのご注文はお控えください。`,
    }),
};

const draft = (userId: string, text: Text, data?: Data): readonly NotificationDraft[] => [
  { user_id: userId, text, ...(data && { data }) },
];

interface OrderEvent {
  readonly userId?: string | undefined;
  readonly orderId: string;
  readonly clientOrderId: string;
  readonly reasonCode?: string;
}

/** An order that names no user creates no notification. The broker's reason in words is for operators; users get the code. */
const orderDraft = ({ userId, orderId, clientOrderId, reasonCode }: OrderEvent, text: Text) =>
  userId === undefined
    ? []
    : draft(userId, text, {
        order_id: orderId,
        client_order_id: clientOrderId,
        ...(reasonCode && { reason_code: reasonCode }),
      });

interface PointsEvent {
  readonly transactionId: string;
  readonly pointAmount: bigint;
  readonly balance: bigint;
}

/** Amounts are strings, because they may exceed 2^53. */
const pointsData = ({ transactionId, pointAmount, balance }: PointsEvent): Data => ({
  transaction_id: transactionId,
  point_amount: String(pointAmount),
  balance: String(balance),
});

const formatPoints = (amount: bigint) => (amount === 1n ? "1 point" : `${amount} points`);

/** Names the time zone: 2026-01-31 09:30 UTC. */
function formatMinute({ seconds }: { readonly seconds: bigint }): string {
  const time = new Date(Number(seconds) * 1_000).toISOString();
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}

/** One draft per user, even if the event lists a user twice. */
export function draftsFor<Type extends EventType>(eventType: Type, event: Event<Type>): readonly NotificationDraft[] {
  const byUser = Map.groupBy(templates[eventType](event), ({ user_id }) => user_id);
  return [...byUser.values()].flatMap((drafts) => drafts.slice(0, 1));
}
