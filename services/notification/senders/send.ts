/** The port of a notification channel. */
import type { Outcome } from "@todoke/kernel/worker";
import type { Notification } from "../store/notifications.ts";

export interface Attempt {
  /** 1 for the first. */
  readonly attempt: number;
  /** Aborts when the lease is lost or the service stops: the outcome no longer matters. */
  readonly signal: AbortSignal;
}

/**
 * Returns "done" once the receiver has the notification, "dead" if it never will, and "release" if nothing can be sent now.
 * An error is retried with backoff. It may be called more than once for one notification, with the same id.
 */
export interface Send {
  (notification: Notification, attempt: Attempt): Promise<Outcome>;
  /**
   * The channel is in this process: it returns at once, and it cannot fail for one notification only. Notifications are then
   * sent without claims, in the transaction that inserts them as SENT.
   */
  readonly isLocal?: true;
  /** Called after a batch and before its commit: afterwards, a crash of this process loses nothing that was sent. */
  readonly flush?: () => void;
}
