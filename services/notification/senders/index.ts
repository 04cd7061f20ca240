/** How a notification leaves the house. */
import type { Outcome } from "@todoke/kernel/worker";
import type { Notification } from "../store/notifications.ts";

interface Try {
  /** 1 for the first. */
  readonly attempt: number;
  /** Fires when the outcome no longer counts: the lease is lost, or the service stops. */
  readonly signal: AbortSignal;
}

/**
 * Answers what became of it: "done" once the receiver has it, "dead" when it never will, "release" when none can be sent
 * just now. A throw is a retry with backoff. It may be called twice for one notification; the id is the same then.
 */
export type Send = (notification: Notification, about: Try) => Promise<Outcome>;
