/** Chooses the notification channel that the settings name. A new channel is a file here and a kind of `SenderSettings`. */
import { type Backoff, defaultWorkerSettings } from "@todoke/kernel/worker";
import type { SenderSettings } from "../config.ts";
import { type Log, logSender } from "./log.ts";
import type { Send } from "./send.ts";
import { webhookSenders } from "./webhook.ts";

export interface SenderContext {
  readonly log: Log;
  readonly backoff: Backoff;
  /** How many notifications the worker sends at once. */
  readonly concurrency?: number;
}

export function createSender(
  sender: SenderSettings,
  { log, backoff, concurrency = defaultWorkerSettings.concurrency }: SenderContext,
): Send {
  switch (sender.kind) {
    case "log":
      return logSender(log);
    case "webhook":
      return webhookSenders({ ...sender, backoff, concurrency });
  }
}
