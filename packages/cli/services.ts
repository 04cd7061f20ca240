/** The services that this command can run. To add one, add an entry to `services`. Its code is loaded only when it runs. */
import type { AuditSpec } from "@todoke/kernel/audit";
import type { EventBus } from "@todoke/kernel/bus";
import type { Delays } from "@todoke/kernel/claims";
import type { AppliedMigration, Queryable } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import type { BusRequest, ProcessGroup, ServiceSubjects } from "@todoke/service";
import type { Lookup } from "@todoke/service/why";
import { devKey } from "./dev-env.ts";
import type { ExampleUser } from "./example-user.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** A service, before its code is loaded. */
export interface ServiceEntry {
  /** Kebab-case. It is the prefix of its variables: GATEWAY_BFF_PORT, GATEWAY_BFF_DATABASE_URL. */
  readonly name: string;
  /** Default of <NAME>_PORT. Its ops listener is on this port + 1000. */
  readonly port: number;
  /** A setting without which the service is not meant to run here; `todoke doctor` then ignores its other settings. */
  readonly neededSetting?: string;
  /** One line for tables and help. */
  readonly summary: string;
  /** Its URL for users, if it differs from the address that it listens on. */
  readonly publicUrl?: (env: Env) => string | undefined;
  /** A shell command to try it under `todoke dev`. */
  readonly example?: (url: string, user: ExampleUser) => string;
  load(): Promise<Service>;
}

export interface Service {
  /** All errors in its settings. Reads only `env`. */
  configErrors(env: Env): readonly string[];
  /** Runs the missing migrations and returns them; with `dryRun` it only returns them. */
  migrate(env: Env, options: { readonly dryRun: boolean }): Promise<readonly AppliedMigration[]>;
  /** Its tables with dead letters. */
  readonly dead?: { readonly schema: string; readonly tables: readonly DeadLetters[] };
  /** Rows of its tables that users wait for. */
  delays?(db: Queryable): Promise<readonly Delays[]>;
  /** How an id is looked up in its tables. */
  readonly why?: readonly Lookup[];
  /** Its rules for `todoke audit`. */
  readonly audits?: { readonly specs: readonly AuditSpec[]; keptMs(env: Env): number };
  /** The subjects that it emits and consumes. */
  readonly events?: ServiceSubjects;
  /** Resolves when it is ready. */
  start(env: Env, dependencies: ServiceDependencies): Promise<RunningService>;
}

/** The dependencies that the command passes to a service. */
interface ServiceDependencies {
  /** Connects to a bus. `name` identifies the connection at the message broker. */
  openBus(name: string, bus: BusRequest): Promise<EventBus>;
  /** The processes of the command, if it has several. */
  readonly group?: ProcessGroup | undefined;
}

/** A running service. Disposing it drains it: it takes no new work, finishes what runs and releases the rest. */
export interface RunningService extends AsyncDisposable {
  readonly url: string;
  readonly opsUrl?: string;
  /** Resolves when it has stopped; rejects if it failed. */
  readonly stopped: Promise<void>;
}

/** In start order. The gateway is last, because it calls all others. */
export const services: readonly ServiceEntry[] = [
  {
    name: "account",
    port: 8081,
    summary: "users, identities and user roles",
    load: () => import("@todoke/account"),
  },
  {
    name: "entitlement",
    port: 8082,
    summary: "entitlements of users: grant, revoke, list",
    example: (url, { userId, purchaseId }) => `curl -i ${url}/v1/entitlements/grants \\
  -H "Authorization: Bearer ${devKey}" -H "Idempotency-Key: ${purchaseId}" -H "Content-Type: application/json" \\
  -d '{"user_id":"${userId}","stock_keeping_unit":"item1","reason":"purchase","purchase_id":"${purchaseId}"}'

curl ${url}/v1/users/${userId}/entitlements -H "Authorization: Bearer ${devKey}"`,
    load: () => import("@todoke/entitlement"),
  },
  {
    name: "notification",
    port: 8083,
    summary: "notifications to users",
    example: (url, { userId }) => `curl ${url}/debug/notification/inbox/${userId}`,
    load: () => import("@todoke/notification"),
  },
  {
    name: "matchmaking",
    port: 8084,
    summary: "matchmaking: tickets, queues and matches",
    example: (url) => `curl ${url}/v1/matchmaking/queues/duel/stats -H "Authorization: Bearer ${devKey}"`,
    load: () => import("@todoke/matchmaking"),
  },
  {
    name: "points",
    port: 8085,
    summary: "points of users: ledger, holds and reservations",
    example: (
      url,
      { userId },
    ) => `curl -i ${url}/point/reserve -H "Authorization: Bearer ${devKey}" -H "Content-Type: application/json" \\
  -d '{"user_id":"${userId}","point_amount":100,"execute_at":"2026-01-15T10:00:00+09:00"}'

curl "${url}/point/confirm?user_id=${userId}" -H "Authorization: Bearer ${devKey}"`,
    load: () => import("@todoke/points"),
  },
  {
    name: "orders",
    port: 8086,
    summary: "orders to a broker, none lost and none doubled",
    example: (url) => `curl -i ${url}/do/order \\
  -H "Authorization: Bearer ${devKey}" -H "Idempotency-Key: k-1" -H "Content-Type: application/json" \\
  -d '{"idempotency_key":"k-1","order_id":"o-1","instrument":"BTC-USD","side":"BUY","qty":"0.5","price":null,"requested_at":"2026-01-31T09:30:00Z"}'

curl ${url}/do/order/k-1 -H "Authorization: Bearer ${devKey}"`,
    load: () => import("@todoke/orders"),
  },
  {
    name: "gateway-bff",
    port: 8080,
    neededSetting: "OIDC_ISSUER",
    summary: "gateway for browsers and game clients",
    publicUrl: (env) => env.GATEWAY_BFF_ORIGIN,
    load: () => import("@todoke/gateway-bff"),
  },
];
