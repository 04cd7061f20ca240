/** Metrics and log of the workers. */
import type { TransitionTarget } from "./transitions.ts";

interface ReportedOrder {
  readonly idempotencyKey: string;
  readonly attempts: number;
}

export type BrokerCall = "send" | "find" | "cancel" | "fills";

export interface SenderTelemetry {
  /** A transition is committed. Called once for each, by the worker that made it. */
  transitioned(order: ReportedOrder, target: Pick<TransitionTarget, "to" | "code">): void;
  /** `startedAt` is a reading of performance.now(). */
  brokerCalled(call: BrokerCall, result: string, startedAt: number): void;
  /** The dispatch of an order is recorded, this long after it was accepted. */
  dispatched(ageMs: number): void;
  /** Counts newly recorded fills. */
  filled(fills: number): void;
}

export const noTelemetry: SenderTelemetry = { transitioned() {}, brokerCalled() {}, dispatched() {}, filled() {} };
