/** What points, orders and matchmaking return, as far as the console shows it. */
import type { Int, Page } from "./types.ts";

export interface Transaction {
  readonly transaction_id: string;
  readonly kind: string;
  readonly point_amount: Int;
  readonly balance: Int;
  readonly reason?: string;
  readonly source?: string;
  readonly source_id?: string;
  readonly created_at: string;
}

interface Reservation {
  readonly id: string;
  readonly user_id: string;
  readonly point_amount: Int;
  readonly execute_at: string;
  readonly status: string;
  readonly last_error?: string;
  readonly created_at: string;
}
export type Reservations = { readonly reservations: readonly Reservation[] } & Page;

export interface Schedule {
  readonly schedule_id: string;
  readonly cron?: string;
  readonly point_amount: Int;
  readonly status: string;
  readonly reason?: string;
  readonly next_run_at?: string;
}

export interface Order {
  readonly id: string;
  readonly caller: string;
  readonly order_id: string;
  readonly user_id: string | null;
  readonly client_order_id: string;
  readonly instrument: string;
  readonly side: string;
  readonly qty: string;
  readonly price: string | null;
  readonly adapter: string;
  readonly status: string;
  readonly attempts: number;
  readonly reason_code: string | null;
  readonly reason: string | null;
  readonly broker_order_id: string | null;
  readonly execution: string | null;
  readonly filled_qty: string;
  readonly in_doubt_since: string | null;
  readonly next_attempt_at: string | null;
  readonly created_at?: string;
}
export type OrderList = { readonly orders: readonly Order[] } & Page;

export interface OrderStep {
  readonly place: number;
  readonly from: string | null;
  readonly to: string;
  readonly code: string | null;
  readonly detail: string | null;
  readonly at: string;
  readonly by: string;
}

export interface TradingState {
  readonly scope: string;
  readonly mode: "active" | "cancel-only" | "halt";
  readonly reason: string;
  readonly set_by: string;
  readonly set_at: string;
}

export interface Reconciliation {
  readonly adapter: string;
  readonly last_started_at: string | null;
  readonly last_ok_at: string | null;
  readonly last_error: string | null;
  readonly seen: number;
  readonly mismatches: number;
  /** The first mismatches. */
  readonly details: readonly BookMismatch[];
}

interface BookMismatch {
  readonly kind: string;
  readonly clientOrderId: string;
  readonly detail: string;
}

export interface LastAudit {
  readonly started_at?: string | null;
  readonly finished_at?: string | null;
  readonly violations: number;
  readonly findings: readonly { readonly rule: string; readonly about: string; readonly detail: string }[];
}

export interface Ticket {
  readonly ticket_id: string;
  readonly mode: string;
  readonly status: string;
  readonly joined_at?: string;
  readonly matched_at?: string;
  readonly ended_at?: string;
  readonly match_id?: string;
  readonly reason?: string;
}

export interface QueueStats {
  readonly mode: string;
  readonly waiting: number;
  readonly oldest_wait_seconds?: number;
  readonly time_to_match_seconds?: { readonly p50: number; readonly p90: number; readonly p99: number };
}

export interface RuleSteps {
  readonly attribute: string;
  /** Null: no limit. */
  readonly steps: readonly { readonly after_seconds: number; readonly limit: number | null }[];
}

export interface ModeRules {
  readonly mode: string;
  readonly teams: number;
  readonly team_size: number;
  readonly party_max: number;
  readonly ticket_seconds: number;
  readonly heartbeat_seconds: number | null;
  readonly avoid_last_opponent_seconds: number | null;
  readonly set_by_backend: readonly string[];
  readonly skill: RuleSteps | null;
  readonly latency: RuleSteps | null;
  readonly regions: string | null;
}

interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

interface Bar {
  readonly from: number;
  readonly to: number | null;
  readonly count: number;
}

export interface Simulation {
  readonly tickets: number;
  readonly matches: number;
  readonly matched: number;
  readonly expired: number;
  readonly lasted_seconds: number;
  readonly waiting_seconds: Percentiles | null;
  readonly skill_gap: Percentiles | null;
  readonly team_gap: Percentiles | null;
  readonly waiting_histogram: readonly Bar[];
  readonly skill_gap_histogram: readonly Bar[];
}
