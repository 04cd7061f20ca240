/** The settings of this service. Every error is a sentence; nothing is guessed. */
import { readSetting } from "@todoke/http";
import { type Env, integerReader, readBoolean } from "@todoke/service";
import { type Fault, faults, isFault } from "./brokers/faults.ts";
import type { BrokerSettings } from "./brokers/index.ts";

export interface Settings {
  readonly broker: BrokerSettings;
  /** The file of instruments; default: the built-in ones. */
  readonly instrumentsPath?: string;
  readonly sender: {
    readonly concurrency: number;
    /** How long the broker has to reply. */
    readonly timeoutMs: number;
    /** Orders per second to the broker, over all senders; 0: no limit. */
    readonly perSecond: number;
    /** The delay after each failed attempt; an order has as many attempts. */
    readonly backoffMs: readonly number[];
  };
  /** How long the ledger has a key, and how long an ended order is kept. */
  readonly ledgerMs: number;
  readonly keepMs: number;
  /** New orders are rejected if the last reconciliation is older; null: never. */
  readonly reconciledWithinMs: number | null;
}

const hourMs = 60 * 60 * 1_000;

// Three reconciliations, one of which may fail.
const reconciledWithinMs = 3 * 60 * 1_000;

/** The backoff of the seed, in seconds. */
const defaultBackoff = "5,10,20,40,80,160";

export function readSettings(env: Env, errors: string[]): Settings {
  const integer = integerReader(env, errors);
  const timeoutMs = integer("ORDERS_BROKER_TIMEOUT_MS", 10_000, [100, 600_000]);
  // The runtime reads the leases too, and reports values that are not numbers.
  for (const worker of ["SENDER", "CHECKER", "CANCELLER", "FOLLOWER", "RECONCILER"]) {
    const variable = `ORDERS_${worker}_LEASE_MS`;
    const name = env[variable] ? variable : "ORDERS_LEASE_MS";
    const error = `${name} should be at least twice ORDERS_BROKER_TIMEOUT_MS: the lease must outlast a request to the broker`;
    if (Number(env[name] || 30_000) < 2 * timeoutMs && !errors.includes(error)) errors.push(error);
  }
  const ledgerMs = integer("ORDERS_LEDGER_HOURS", 48, [1, 8_760]) * hourMs;
  const keepMs = integer("ORDERS_KEEP_DAYS", 90, [1, 3_650]) * 24 * hourMs;
  if (keepMs < ledgerMs)
    errors.push("ORDERS_KEEP_DAYS should not be less than ORDERS_LEDGER_HOURS: the ledger refers to orders");
  return {
    broker: readBroker(env, errors),
    ...(env.ORDERS_INSTRUMENTS && { instrumentsPath: env.ORDERS_INSTRUMENTS }),
    sender: {
      concurrency: integer("ORDERS_SENDER_CONCURRENCY", 4, [1, 1_000]),
      timeoutMs,
      perSecond: integer("ORDERS_BROKER_PER_SECOND", 0, [0, 1_000_000]),
      backoffMs: readBackoff(env, errors),
    },
    ledgerMs,
    keepMs,
    reconciledWithinMs: readBoolean(env, errors, "ORDERS_REQUIRE_RECONCILIATION") ? reconciledWithinMs : null,
  };
}

function readBroker(env: Env, errors: string[]): BrokerSettings {
  const kind = readSetting(env, ["ORDERS_BROKER"], "paper");
  if (kind === "http") return readHttpBroker(env, errors);
  if (kind !== "paper") errors.push(`ORDERS_BROKER is ${JSON.stringify(kind)} and should be paper or http`);
  const seed = integerReader(env, errors)("ORDERS_PAPER_SEED", 1, [0, 2_147_483_647]);
  return { kind: "paper", faults: readPaperFaults(env, errors), seed };
}

const secretMin = 16;

/** No error contains the secret. */
function readHttpBroker(env: Env, errors: string[]): BrokerSettings {
  const url = URL.parse(env.ORDERS_BROKER_URL ?? "");
  const isHttp = url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password;
  if (!isHttp)
    errors.push("ORDERS_BROKER_URL should be the broker's address, such as https://host/path, without a password");
  const secret = env.ORDERS_BROKER_SECRET ?? "";
  if (secret.length < secretMin) errors.push(`ORDERS_BROKER_SECRET should have at least ${secretMin} characters`);
  const windowMs = integerReader(env, errors)("ORDERS_BROKER_WINDOW_MS", 30_000, [0, hourMs]);
  const dedupes = readBoolean(env, errors, "ORDERS_BROKER_DEDUPES");
  const limitsSlippage = readBoolean(env, errors, "ORDERS_BROKER_LIMITS_SLIPPAGE");
  return { kind: "http", url: url ?? new URL("http://invalid/"), secret, dedupes, windowMs, limitsSlippage };
}

/** Chances of the paper broker's faults: "lost-after=0.1,slow=0.05". */
function readPaperFaults(env: Env, errors: string[]): ReadonlyMap<Fault, number> {
  const chances = new Map<Fault, number>();
  for (const pair of (env.ORDERS_PAPER_FAULTS ?? "").split(",").filter(Boolean)) {
    const [name = "", chance = ""] = pair.trim().split("=");
    if (isFault(name) && /^(?:0(?:\.\d+)?|1)$/.test(chance)) chances.set(name, Number(chance));
    else errors.push(`ORDERS_PAPER_FAULTS should be chances from 0 to 1, such as slow=0.1, of ${faults.join(", ")}`);
  }
  return chances;
}

function readBackoff(env: Env, errors: string[]): readonly number[] {
  const value = readSetting(env, ["ORDERS_BACKOFF_SECONDS"], defaultBackoff);
  const delays = value.split(",").map(Number);
  const isValid = delays.length <= 20 && delays.every((delay) => delay >= 0.01 && delay <= 86_400);
  if (!isValid) errors.push("ORDERS_BACKOFF_SECONDS should be 1 to 20 delays in seconds, such as 5,10,20,40,80,160");
  return isValid ? delays.map((delay) => delay * 1_000) : [];
}
