/** What the gateway returns, by the types of the generated client. */
import type * as api from "@todoke/client";

/** An integer of any size: a bigint only past 2^53, as json.ts reads it. */
export type Int = number | bigint;

/** A type of the client as json.ts reads its value. */
type Read<T> = T extends bigint
  ? Int
  : T extends readonly (infer Item)[]
    ? readonly Read<Item>[]
    : T extends object
      ? { readonly [Name in keyof T]: Read<T[Name]> }
      : T;

export interface Page {
  readonly next_cursor?: string;
}

export type { StaffRole } from "@todoke/client";
export type User = Read<api.User>;
export type ListedSession = Read<api.Session>;
export type Entitlement = Read<api.Entitlement>;
export type Notification = Read<api.InboxEntry>;
export type Transaction = Read<api.StatementEntry>;
export type Reservations = { readonly reservations: readonly Read<api.Reservation>[] } & Page;
export type Schedule = Read<api.Schedule>;
export type Ticket = Read<api.Ticket>;
export type QueueStats = Read<api.QueueStats>;
export type ModeRules = Read<api.ModeRules>;
export type RuleSteps = NonNullable<ModeRules["skill"]>;
export type Simulation = Read<api.Simulation>;

export type Order = Read<api.Order>;
export type OrderList = Read<api.OrderPage>;
export type OrderStep = Read<api.OrderTransition>;
export type TradingState = Read<api.TradingState>;
export type Reconciliation = Omit<Read<api.Reconciliation>, "details"> & {
  readonly details: readonly { readonly kind: string; readonly clientOrderId: string; readonly detail: string }[];
};
export type LastAudit = Read<api.LastAudit>;

export type OverviewAnswer = Read<api.Overview>;
export type ServiceOverview = Read<api.ServiceOverview>;
export type Sample = Read<api.MinuteSample>;
export type Need = Read<api.Need>;
export type AuditAct = Read<api.ServiceStaffAct>;
export type ApiKey = Read<api.ApiKey>;
/** A service that did not answer; the rest of the answer is complete. */
export type FailedPart = Read<api.FailedService>;

export type DeadGroup = Read<api.DeadLetterGroup>;
export type DeadGroups = Read<api.AllDeadLetterGroups>;
export type DeadLetter = Read<api.DeadLetter>;
export type DeadLetterDetail = Read<api.DeadLetterDetail>;
export type DeadPreview = Read<api.DeadLetterPreview>;
export type DeadBatch = Read<api.DeadLetterBatch>;

export type WhyAnswer = Read<api.Why>;
export type WhyEntry = Read<api.WhyEntry>;
export type DeadTarget = Read<api.WhyDeadLetter>;
