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
