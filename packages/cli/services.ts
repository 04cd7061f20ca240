/**
 * The services that this command can run. Adding one is one entry in `services`; its code is loaded only when it runs.
 */
import type { BusLog, EventBus } from "@todoke/kernel/bus";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { devKey } from "./dev-env.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** What is known of a service without loading it. */
export interface ServiceEntry {
  /** Kebab-case. Its variables begin with it: GATEWAY_BFF_PORT, GATEWAY_BFF_DATABASE_URL. */
  readonly name: string;
  /** What it listens on unless <NAME>_PORT says otherwise. Its ops listener is on this + 1000. */
  readonly port: number;
  /** One line for tables and help. */
  readonly summary: string;
  /** Where people find it, if that is not simply where it listens. */
  readonly publicUrl?: (env: Env) => string | undefined;
  /** A command to paste into a shell once `todoke dev` is up. */
  readonly example?: (url: string) => string;
  load(): Promise<Service>;
}

export interface Service {
  /** All that is wrong with its settings, a sentence each. Reads `env` and nothing else. */
  configErrors(env: Env): readonly string[];
  /** Brings its schema up to date and says what it ran; with `dryRun`, what it would run. */
  migrate(env: Env, options: { readonly dryRun: boolean }): Promise<readonly Migrated[]>;
  /** Where its rows are that were given up; without, it has none. */
  readonly dead?: { readonly schema: string; readonly tables: readonly DeadLetters[] };
  /** Resolves once it serves. */
  start(env: Env, outside: Outside): Promise<Running>;
}

/** What a service is handed because it must not choose it itself. */
interface Outside {
  /** Opens the bus that EVENT_BUS_URL names. `name` is shown to the broker's operator. */
  openBus(name: string, log: BusLog): Promise<EventBus>;
}

/** One migration: the kernel's `Applied`. */
export interface Migrated {
  readonly set: string;
  readonly version: number;
  readonly name: string;
}

/** A service at work. Disposing it drains it: no new work, what runs is finished, the rest given back. */
export interface Running extends AsyncDisposable {
  readonly url: string;
  readonly opsUrl?: string;
  /** Settles when it has stopped, also by itself; rejects with why when it could not go on. */
  readonly stopped: Promise<void>;
}

/** In the order in which they are started: the gateway, which calls all others, comes last. */
export const services: readonly ServiceEntry[] = [
  {
    name: "account",
    port: 8081,
    summary: "who is who: users, identities, roles",
    load: () => import("@todoke/account"),
  },
  {
    name: "entitlement",
    port: 8082,
    summary: "who may use what: grants, revokes, and what a user has",
    example: (url) => `curl -i ${url}/v1/entitlements/grants \\
  -H "Authorization: Bearer ${devKey}" -H "Idempotency-Key: p_456" -H "Content-Type: application/json" \\
  -d '{"user_id":"u_123","stock_keeping_unit":"item1","reason":"purchase","purchase_id":"p_456"}'

curl ${url}/v1/users/u_123/entitlements -H "Authorization: Bearer ${devKey}"`,
    load: () => import("@todoke/entitlement"),
  },
  {
    name: "notification",
    port: 8083,
    summary: "tells users what happened",
    example: (url) => `curl ${url}/debug/notification/inbox/u_123`,
    load: () => import("@todoke/notification"),
  },
  {
    name: "matchmaking",
    port: 8084,
    summary: "who plays whom: tickets, queues and matches",
    example: (url) => `curl ${url}/v1/matchmaking/queues/duel/stats -H "Authorization: Bearer ${devKey}"`,
    load: () => import("@todoke/matchmaking"),
  },
  {
    name: "points",
    port: 8085,
    summary: "what users have earned: a ledger, and grants booked ahead",
    example: (
      url,
    ) => `curl -i ${url}/point/reserve -H "Authorization: Bearer ${devKey}" -H "Content-Type: application/json" \\
  -d '{"user_id":"u_123","point_amount":100,"execute_at":"2026-01-15T10:00:00+09:00"}'

curl "${url}/point/confirm?user_id=u_123" -H "Authorization: Bearer ${devKey}"`,
    load: () => import("@todoke/points"),
  },
  {
    name: "orders",
    port: 8086,
    summary: "orders, sent to a broker once, surely",
    example: (url) => `curl -i ${url}/do/order \\
  -H "Authorization: Bearer ${devKey}" -H "Idempotency-Key: k-1" -H "Content-Type: application/json" \\
  -d '{"idempotency_key":"k-1","order_id":"o-1","instrument":"BTC-USD","side":"BUY","qty":0.5,"price":60000,"requested_at":"2026-01-15T10:00:00+09:00"}'

curl ${url}/do/order/k-1 -H "Authorization: Bearer ${devKey}"`,
    load: () => import("@todoke/orders"),
  },
  {
    name: "gateway-bff",
    port: 8080,
    summary: "where players come in",
    publicUrl: (env) => env.GATEWAY_BFF_ORIGIN,
    load: () => import("@todoke/gateway-bff"),
  },
];
