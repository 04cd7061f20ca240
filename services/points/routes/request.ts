/** Reads the parts of a request that all routes share: access, amounts, times, keys. */
import { type AccessRule, type Authenticate, guarded, idempotencyKey, problems } from "@todoke/http";
import type { IdempotencyKey } from "@todoke/kernel/idempotency";
import type { FastifySchema } from "fastify";
import { type Kind, pointsMax } from "../ledger/account.ts";
import { type Precision, parseInstant } from "../schedules/instant.ts";

export const writers = { key: "points:write", staff: "ADMIN" } as const;
export const readers = { key: "read", staff: "VIEWER" } as const;
export const operators = { staff: "OPERATOR" } as const;
/** For paths that name a user, who may read their own data. */
export const ownReaders = { ...readers, user: "own" } as const;

export type Request = Parameters<typeof idempotencyKey>[0];

export type Command = Kind | "RESERVE" | "CANCEL" | "SCHEDULE";

/** The command, not the path: a key means the same on both paths of a command. */
export const keyScope = ({ caller }: Pick<Request, "caller">, command: Command): string => `${caller} ${command}`;

/** The digest does not depend on the path either, nor on 100 or "100": amounts in the body are digits by now. */
export const commandKey = (request: Request, command: Command): IdempotencyKey => ({
  ...idempotencyKey(request, request.caller),
  scope: keyScope(request, command),
});

/** Route options for a body with amounts: they are read exactly and passed on as digits. */
export const withAmounts = <const Schema extends FastifySchema>(
  authenticate: Authenticate,
  schema: Schema,
  rule: AccessRule = writers,
) => ({
  ...guarded(authenticate, rule, schema),
  config: { rule, longIntegers: true },
  preHandler: ({ body }: Request, _reply: unknown, done: () => void): void => {
    const { items } = body as { readonly items?: readonly BodyWithAmount[] };
    if (items) for (const [index, item] of items.entries()) toDigits(item, `body.items[${index}]`);
    else toDigits(body as BodyWithAmount, "body");
    done();
  },
});

interface BodyWithAmount {
  point_amount?: string | number;
}

/** The schema has checked the digits, but it cannot express the maximum. */
function toDigits(body: BodyWithAmount, path: string): void {
  if (body.point_amount === undefined) return;
  body.point_amount = String(body.point_amount);
  if (BigInt(body.point_amount) > pointsMax)
    throw problems.invalidField(`${path}.point_amount`, `must be ${pointsMax} or less`);
}

export const parseAmount = (digits: string | undefined): bigint | undefined =>
  digits === undefined ? undefined : BigInt(digits);

/** Converts to UTC. The schema has checked the format; whether the time is in range depends on its offset. */
export function parseTime(text: string, field: string, precision: Precision): string {
  const utc = parseInstant(text, precision);
  if (utc === undefined)
    throw problems.invalidField(field, "must be a time from the year 0001 to the year 9999 in UTC");
  return utc;
}

interface OriginBody {
  readonly reason?: string;
  readonly source?: string;
  readonly source_id?: string;
}

export const toOrigin = ({ reason, source, source_id }: OriginBody) => ({ reason, source, sourceId: source_id });

/** A cursor with an id. */
export const idCursor = { parts: ["uuid"] } as const;

/** Route options for an optional body. */
export const optionalBody = {
  preValidation: (request: Request, _reply: unknown, done: () => void): void => {
    request.body ??= {};
    done();
  },
};
