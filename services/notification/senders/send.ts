/** The port of a notification channel. */
import type { Outcome } from "@todoke/kernel/worker";
import type { Notification } from "../store/notifications.ts";

interface Attempt {
  /** 1 for the first. */
  readonly attempt: number;
  /** Aborts when the lease is lost or the service stops: the outcome no longer matters. */
  readonly signal: AbortSignal;
}

/**
 * Returns "done" once the receiver has the notification, "dead" if it never will, and "release" if nothing can be sent now.
 * An error is retried with backoff. It may be called more than once for one notification, with the same id.
 */
export type Send = (notification: Notification, attempt: Attempt) => Promise<Outcome>;
