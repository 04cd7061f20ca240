/** What the admin routes of the gateway return, as far as the console shows it. */

export type StaffRole = "VIEWER" | "OPERATOR" | "ADMIN";
/** An integer of any size. */
export type Int = number | bigint;

export interface Page {
  readonly next_cursor?: string;
}

/** A service that did not answer; the rest of the answer is complete. */
export interface FailedPart {
  readonly service: string;
  readonly detail: string;
}

export interface User {
  readonly user_id: string;
  readonly status: "ACTIVE" | "SUSPENDED" | "DELETED";
  readonly display_name?: string;
  readonly locale?: string;
  readonly email?: string;
  readonly roles: readonly string[];
  readonly suspended_until?: string;
  readonly suspended_reason?: string;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface AuditAct {
  readonly service: string;
  readonly act_id: string;
  readonly at: string;
  readonly actor: string;
  readonly role: StaffRole | null;
  readonly act: string;
  readonly target: string;
  readonly reason: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly undoes: string | null;
  readonly undone_by: string | null;
}

export interface DeadGroup {
  readonly service: string;
  readonly table: string;
  readonly group: string;
  readonly error: string;
  readonly example: string;
  readonly example_id: string;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
}

export interface DeadGroups {
  readonly groups: readonly DeadGroup[];
  readonly tables: readonly { service: string; table: string; dead: number; capped: boolean }[];
  readonly failed: readonly FailedPart[];
}

export interface DeadLetter {
  readonly id: string;
  readonly event_type: string;
  readonly about: string;
  readonly attempt_count: number;
  readonly last_error: string | null;
  readonly since: string;
  readonly group: string;
}

export interface DeadLetterDetail extends DeadLetter {
  readonly state: "dead" | "not dead" | "discarded";
  readonly payload: unknown;
  readonly payload_base64?: string;
  readonly headers?: object;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly redrives: readonly {
    readonly redriven_at: string;
    readonly redriven_by: string;
    readonly reason: string;
    readonly last_error: string | null;
  }[];
  readonly discarded?: {
    readonly at: string;
    readonly by: string;
    readonly reason: string;
    readonly copy_removed_at: string | null;
  };
}

export interface DeadPreview {
  readonly count: number;
  readonly capped: boolean;
  readonly through: string | null;
}

export interface DeadBatch {
  readonly batch_id: string;
  readonly service: string;
  readonly act: "redrive" | "discard";
  readonly table: string;
  readonly filter: Readonly<Record<string, string>>;
  readonly reason: string;
  readonly created_by: string;
  readonly created_at: string;
  readonly state: "RUNNING" | "DONE" | "STOPPED";
  readonly total: number;
  readonly total_capped: boolean;
  readonly examined: number;
  readonly applied: number;
  readonly finished_at: string | null;
  readonly error: string | null;
}

export interface Sample {
  readonly minute: string;
  readonly requests: number | null;
  readonly errors: number | null;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly backlog: number | null;
  readonly oldest_age_s: number | null;
  readonly dead: number | null;
}

export interface ServiceOverview {
  readonly service: string;
  readonly ready: boolean;
  readonly engines: readonly { readonly name: string; readonly ok: boolean; readonly detail?: string }[];
  readonly processes: number;
  readonly samples: readonly Sample[];
}

export interface Need {
  readonly service: string;
  readonly kind: string;
  readonly count: number;
  readonly capped: boolean;
  readonly oldest_at?: string;
  readonly detail: string;
  readonly cure: { readonly text: string; readonly href: string | null };
}

export interface OverviewAnswer {
  readonly at: string;
  readonly services: readonly ServiceOverview[];
  readonly needs_you: readonly Need[];
  readonly failed: readonly FailedPart[];
}

export interface DeadTarget {
  readonly service: string;
  readonly table: string;
  readonly id: string;
}

export interface WhyEntry {
  readonly service: string;
  readonly kind: string;
  readonly id: string;
  readonly at: string | null;
  readonly state: string | null;
  readonly attempt: number | null;
  readonly process: string | null;
  readonly trace_id: string | null;
  readonly detail: string | null;
  readonly error: string | null;
  readonly next_retry_at: string | null;
  readonly blocked_by: {
    readonly service: string;
    readonly kind: string;
    readonly id: string;
    readonly state: string;
    readonly since: string | null;
    readonly error: string | null;
  } | null;
  readonly dead_letter: DeadTarget | null;
  readonly links: readonly WhyLink[];
}

interface WhyLink {
  readonly kind: string;
  readonly id: string;
}

export interface WhyAnswer {
  readonly id: string;
  readonly outcome: string;
  readonly sentence: string;
  readonly cure: {
    readonly text: string;
    readonly command: string | null;
    readonly dead_letter: DeadTarget | null;
  } | null;
  readonly found: readonly { readonly kind: string; readonly id: string; readonly service: string }[];
  readonly entries: readonly WhyEntry[];
  readonly truncated: boolean;
  readonly links: readonly WhyLink[];
  readonly parts: readonly {
    readonly service: string;
    readonly status: "ok" | "failed" | "absent";
    readonly reason: string | null;
  }[];
}

export interface Entitlement {
  readonly stock_keeping_unit: string;
  readonly status: string;
  readonly version: Int;
  readonly updated_at: string;
  readonly expires_at?: string;
}

export interface Notification {
  readonly notification_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly text: { readonly en: string; readonly ja: string };
  readonly status: string;
  readonly attempt_count: number;
  readonly occurred_at: string;
  readonly next_retry_at?: string;
  readonly sent_at?: string;
  readonly last_error?: string;
}

export interface ListedSession {
  readonly session_id: string;
  readonly client: string;
  readonly user_agent?: string;
  readonly created_at: string;
  readonly last_seen_at: string;
  readonly ends_at: string;
}

export interface ApiKey {
  readonly key_id: string;
  readonly holder: string;
  readonly scopes: readonly string[];
  readonly services: readonly string[];
  readonly state: string;
  readonly created_at: string | null;
  readonly created_by: string | null;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly revoked_reason: string | null;
}
