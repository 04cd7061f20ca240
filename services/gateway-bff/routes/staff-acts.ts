/** How routes for staff are declared whose path is the same at the service. */
import { type TObject, Type } from "typebox";
import type { UpstreamName } from "../problems.ts";
import type { ForwardedRoute } from "./forward.ts";
import { PassThroughBody } from "./schemas.ts";

export const viewers = { staff: "VIEWER" } as const;
export const operators = { staff: "OPERATOR" } as const;

export type Texts = Pick<ForwardedRoute, "operationId" | "summary" | "description">;

interface Act extends Texts {
  readonly path: string;
  readonly upstream: UpstreamName;
  readonly tag: string;
  readonly body: TObject;
  readonly params?: TObject;
  readonly creates?: true;
}

/** An act on a user or an order, at the same path of the service. */
export const act = ({ path, ...more }: Act): ForwardedRoute => ({
  method: "POST",
  path,
  upstreamPath: path.replace("([^/:]+)::", ":"),
  rule: operators,
  idempotent: true,
  response: PassThroughBody,
  ...more,
});

interface Read extends Texts {
  readonly path: string;
  readonly upstream: UpstreamName;
  readonly tag: string;
  readonly params?: TObject;
  readonly query?: TObject;
}

/** A read, at the same path of the service. */
export const read = ({ path, ...more }: Read): ForwardedRoute => ({
  method: "GET",
  path,
  upstreamPath: path,
  rule: viewers,
  response: PassThroughBody,
  ...more,
});

export const text = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));
