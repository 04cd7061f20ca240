/** What the routes of this service read from a request in the same way: who may ask, amounts, times, keys. */
import { idempotencyKey, problems, type requires } from "@todoke/http";
import type { IdempotencyKey } from "@todoke/kernel/idempotency";
import type { PointsChange } from "../commands/change-points.ts";
import { pointsMax } from "../ledger/account.ts";
import { type Precision, utcOf } from "../reservations/instant.ts";

export const writers = { key: "points:write", admin: true } as const;
export const readers = { key: "read", admin: true } as const;
/** Of paths that name a user: the user reads their own. */
export const ownReaders = { ...readers, user: "own" } as const;

export type Request = Parameters<typeof idempotencyKey>[0];

export type Command = PointsChange["kind"] | "RESERVE" | "CANCEL" | "SCHEDULE";

/** A key means the same by whichever path a command comes. */
export const scopeOf = ({ caller }: Pick<Request, "caller">, command: Command): string => `${caller} ${command}`;

/** The digest too is the same by either path, and for 100 and "100": the body has amounts as their digits by now. */
export const commandKey = (request: Request, command: Command): IdempotencyKey => ({
  ...idempotencyKey(request, request.caller),
  scope: scopeOf(request, command),
});

/** For the options of a route whose body has amounts: read to the last digit, and handed on as digits. */
export const takesAmounts = ({ config, ...options }: ReturnType<typeof requires>) => ({
  ...options,
  config: { ...config, longIntegers: true },
  preHandler: ({ body }: Request, _reply: unknown, done: () => void): void => {
    const { items } = body as { readonly items?: readonly Amounted[] };
    if (items) for (const [place, item] of items.entries()) writeOut(item, `body.items[${place}]`);
    else writeOut(body as Amounted, "body");
    done();
  },
});

interface Amounted {
  point_amount?: string | number;
}

/** The schema has seen that these are digits; only how far they go it cannot say. */
function writeOut(body: Amounted, place: string): void {
  if (body.point_amount === undefined) return;
  body.point_amount = String(body.point_amount);
  if (BigInt(body.point_amount) > pointsMax) throw invalid(`${place}.point_amount`, `must be ${pointsMax} or less`);
}

/** In UTC. The schema has seen that it is a time; whether it is one that can be kept depends on its offset. */
export function timeOf(text: string, field: string, precision: Precision): string {
  const utc = utcOf(text, precision);
  if (utc === undefined) throw invalid(field, "must be a time from the year 0001 to the year 9999 in UTC");
  return utc;
}

/** A cursor that names something by its id. */
export const idCursor = { parts: ["uuid"] } as const;

const invalid = (field: string, detail: string) =>
  problems.invalidRequest(`${field} ${detail}`, { fields: [{ field, detail }] });

/** For the options of a route whose body may be left out. */
export const bodyMayBeLeftOut = {
  preValidation: (request: Request, _reply: unknown, done: () => void): void => {
    request.body ??= {};
    done();
  },
};
