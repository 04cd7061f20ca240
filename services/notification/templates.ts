/**
 * Whom an event concerns, and what each of them is told: one template per type of event, made from the event alone, so
 * that nothing has to be looked up.
 */
import type { Event, EventType } from "@todoke/contracts";

export interface Text {
  readonly en: string;
  readonly ja: string;
}

/** What a program needs beside the words, which are for people and may be put in other words tomorrow. */
export type Data = Readonly<Record<string, string | number>>;

export interface Telling {
  readonly user_id: string;
  readonly text: Text;
  readonly data?: Data;
}

/** Nobody is told of an event with no tellings: it is dealt with, and no notification is made. */
type Templates = { readonly [Type in EventType]: (event: Event<Type>) => readonly Telling[] };

const templates: Templates = {
  EntitlementGranted: ({ userId, stockKeepingUnit }) =>
    tell(userId, {
      en: `You can now use ${stockKeepingUnit}.`,
      ja: `${stockKeepingUnit} をご利用いただけるようになりました。`,
    }),
  EntitlementRevoked: ({ userId, stockKeepingUnit }) =>
    tell(userId, {
      en: `You can no longer use ${stockKeepingUnit}.`,
      ja: `${stockKeepingUnit} はご利用いただけなくなりました。`,
    }),
  EntitlementExpired: ({ userId, stockKeepingUnit }) =>
    tell(userId, {
      en: `Your time with ${stockKeepingUnit} is over.`,
      ja: `${stockKeepingUnit} のご利用期間が終了しました。`,
    }),
  AccountCreated: ({ userId }) =>
    tell(userId, {
      en: "Welcome! Your account is ready.",
      ja: "ようこそ。アカウントの準備ができました。",
    }),
  AccountSuspended: ({ userId, reason, suspendedUntil }) => {
    const until = suspendedUntil && minuteOf(suspendedUntil);
    return tell(userId, {
      en: `Your account is suspended${until ? ` until ${until}` : ""}. Reason: ${reason}`,
      ja: `アカウントが${until ? ` ${until} まで` : ""}停止されました。理由: ${reason}`,
    });
  },
  AccountReinstated: ({ userId }) =>
    tell(userId, {
      en: "Your account can be used again.",
      ja: "アカウントを再びご利用いただけます。",
    }),
  // Who may do what is between admins, and who is gone reads nothing any more.
  AccountRolesChanged: () => [],
  AccountDeleted: () => [],
  MatchMade: ({ matchId, mode, players }) => {
    const text = { en: `Your match in ${mode} is ready.`, ja: `${mode} のマッチが成立しました。` };
    return players.map(({ userId, ticketId, team }) => ({
      user_id: userId,
      text,
      data: { ticket_id: ticketId, match_id: matchId, mode, team: Number(team) },
    }));
  },
  TicketExpired: ({ userId, ticketId, mode, reason }) => {
    const text = {
      en: `No match was found in ${mode}. You can queue again.`,
      ja: `${mode} のマッチは成立しませんでした。もう一度お並びいただけます。`,
    };
    return [{ user_id: userId, text, data: { ticket_id: ticketId, mode, reason } }];
  },
  PointsGranted: ({ userId, transactionId, pointAmount, balance, expiresAt }) => {
    const [points, has, until] = [pointAmount, balance, expiresAt && minuteOf(expiresAt)];
    const text = {
      en: `You got ${pointsOf(points)}${until ? `, to be used by ${until}` : ""}. You now have ${pointsOf(has)}.`,
      ja: `${points} ポイントを獲得しました${until ? `（有効期限 ${until}）` : ""}。残高は ${has} ポイントです。`,
    };
    return [{ user_id: userId, text, data: pointsData({ transactionId, pointAmount, balance }) }];
  },
  PointsSpent: ({ userId, transactionId, pointAmount, balance }) => {
    const text = {
      en: `You spent ${pointsOf(pointAmount)}. You now have ${pointsOf(balance)}.`,
      ja: `${pointAmount} ポイントを使用しました。残高は ${balance} ポイントです。`,
    };
    return [{ user_id: userId, text, data: pointsData({ transactionId, pointAmount, balance }) }];
  },
  PointsExpired: ({ userId, transactionId, pointAmount, balance }) => {
    const text = {
      en: `${pointsOf(pointAmount)} of yours ran out. You now have ${pointsOf(balance)}.`,
      ja: `${pointAmount} ポイントの有効期限が切れました。残高は ${balance} ポイントです。`,
    };
    return [{ user_id: userId, text, data: pointsData({ transactionId, pointAmount, balance }) }];
  },
  // Why is between those who run the service: the user learns that the points are late, and that somebody knows.
  PointReservationFailed: ({ userId, reservationId, pointAmount }) => {
    const text = {
      en: `${pointsOf(pointAmount)} that you were to get could not be granted. We are looking into it.`,
      ja: `付与予定の ${pointAmount} ポイントを付与できませんでした。確認しております。`,
    };
    return [{ user_id: userId, text, data: { reservation_id: reservationId, point_amount: String(pointAmount) } }];
  },
  // Nothing has happened yet: the grant that follows is told.
  PointReservationDue: () => [],
  OrderAccepted: (order) =>
    tellOrder(order, {
      en: `Your order ${order.orderId} is written down and will be sent.`,
      ja: `ご注文 ${order.orderId} を受け付けました。`,
    }),
  OrderSucceeded: (order) =>
    tellOrder(order, {
      en: `Your order ${order.orderId} has been taken by the broker.`,
      ja: `ご注文 ${order.orderId} が取引先に受理されました。`,
    }),
  OrderFailed: (order) =>
    tellOrder(order, {
      en: `Your order ${order.orderId} was given up (${order.reasonCode}). It will not be sent again.`,
      ja: `ご注文 ${order.orderId} は成立しませんでした（${order.reasonCode}）。再送はされません。`,
    }),
  OrderUnresolved: (order) =>
    tellOrder(order, {
      en: `It is not known yet whether your order ${order.orderId} was taken. We are asking; do not order it again.`,
      ja: `ご注文 ${order.orderId} が受理されたか確認中です。重ねてのご注文はお控えください。`,
    }),
};

interface OrderTold {
  readonly userId?: string | undefined;
  readonly orderId: string;
  readonly clientOrderId: string;
  readonly reasonCode?: string;
}

/** What the broker said in words stays between those who run the service; the code is the caller's to act on. */
const tellOrder = ({ userId, orderId, clientOrderId, reasonCode }: OrderTold, text: Text): readonly Telling[] => {
  if (userId === undefined) return [];
  const data = { order_id: orderId, client_order_id: clientOrderId, ...(reasonCode && { reason_code: reasonCode }) };
  return [{ user_id: userId, text, data }];
};

const pointsOf = (amount: bigint) => (amount === 1n ? "1 point" : `${amount} points`);

interface PointsTold {
  readonly transactionId: string;
  readonly pointAmount: bigint;
  readonly balance: bigint;
}

/** Amounts as decimals in strings: they may be past what a JSON number keeps exactly. */
const pointsData = ({ transactionId, pointAmount, balance }: PointsTold): Data => ({
  transaction_id: transactionId,
  point_amount: String(pointAmount),
  balance: String(balance),
});

const tell = (userId: string, text: Text): readonly Telling[] => [{ user_id: userId, text }];

/** One for each user, whatever the event lists twice. */
export function tellingsOf<Type extends EventType>(eventType: Type, event: Event<Type>): readonly Telling[] {
  const byUser = Map.groupBy(templates[eventType](event), ({ user_id }) => user_id);
  return [...byUser.values()].flatMap((tellings) => tellings.slice(0, 1));
}

/** A reader has a clock, but not the server's zone: 2026-01-31 09:30 UTC. */
function minuteOf({ seconds }: { readonly seconds: bigint }): string {
  const time = new Date(Number(seconds) * 1_000).toISOString();
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}
