/** What only this service takes from the environment. Every fault is a sentence; nothing is guessed. */
import { type Env, integerReader } from "@todoke/service";
import { type Fault, faults as faultNames, isFault } from "./brokers/faults.ts";
import type { BrokerSettings } from "./brokers/index.ts";
import { usualWaitsMs } from "./sender/index.ts";

export interface Settings {
  readonly broker: BrokerSettings;
  /** The instruments; without a file, those that come with the service. */
  readonly instrumentsPath?: string;
  readonly sender: {
    readonly concurrency: number;
    /** How long the broker has for an answer. */
    readonly timeoutMs: number;
    /** Orders per second to the broker, over all senders; 0: as many as there are. */
    readonly perSecond: number;
    /** After each failure that is known to be one; an order has as many attempts. */
    readonly waitsMs: readonly number[];
  };
  /** How long a key is in the ledger, and how long an order that has ended is kept. */
  readonly ledgerMs: number;
  readonly keepMs: number;
  /** New orders are refused when the broker's books were last compared longer ago; null: they are not. */
  readonly reconciledWithinMs: number | null;
}

const hourMs = 60 * 60 * 1_000;

// Three looks at the broker's books, one of which may be lost.
const reconciledWithinMs = 3 * 60 * 1_000;

export function readSettings(env: Env, faults: string[]): Settings {
  const whole = integerReader(env, faults);
  const timeoutMs = whole("ORDERS_BROKER_TIMEOUT_MS", 10_000, [100, 600_000]);
  // The runtime reads the leases too, and reports values that are no numbers.
  for (const variable of ["ORDERS_SENDER_LEASE_MS", "ORDERS_RECONCILER_LEASE_MS"]) {
    const name = env[variable] ? variable : "ORDERS_LEASE_MS";
    const error = `${name} should be at least twice ORDERS_BROKER_TIMEOUT_MS: an order is claimed while it is sent`;
    if (Number(env[name] || 30_000) < 2 * timeoutMs && !faults.includes(error)) faults.push(error);
  }
  const ledgerMs = whole("ORDERS_LEDGER_HOURS", 48, [1, 8_760]) * hourMs;
  const keepMs = whole("ORDERS_KEEP_DAYS", 90, [1, 3_650]) * 24 * hourMs;
  if (keepMs < ledgerMs)
    faults.push(
      "ORDERS_KEEP_DAYS should be no less than ORDERS_LEDGER_HOURS: the ledger tells of orders that are kept",
    );
  return {
    broker: readBroker(env, faults),
    ...(env.ORDERS_INSTRUMENTS && { instrumentsPath: env.ORDERS_INSTRUMENTS }),
    sender: {
      concurrency: whole("ORDERS_SENDER_CONCURRENCY", 4, [1, 1_000]),
      timeoutMs,
      perSecond: whole("ORDERS_BROKER_RATE", 0, [0, 1_000_000]),
      waitsMs: readWaits(env, faults),
    },
    ledgerMs,
    keepMs,
    reconciledWithinMs: yes(env, faults)("ORDERS_REQUIRE_RECONCILIATION") ? reconciledWithinMs : null,
  };
}

const yes = (env: Env, faults: string[]) => (name: string) => {
  const said = env[name] || "false";
  if (said !== "true" && said !== "false") faults.push(`${name} should be true or false`);
  return said === "true";
};

/** The secret is shown in no fault. */
function readBroker(env: Env, faults: string[]): BrokerSettings {
  const kind = env.ORDERS_BROKER || "paper";
  if (kind === "http") return readHttpBroker(env, faults);
  if (kind !== "paper") faults.push(`ORDERS_BROKER is ${JSON.stringify(kind)} and should be paper or http`);
  return { kind: "paper", faults: readChances(env, faults) };
}

const secretMin = 16;

function readHttpBroker(env: Env, faults: string[]): BrokerSettings {
  const url = URL.parse(env.ORDERS_BROKER_URL ?? "");
  const isHttp = url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password;
  if (!isHttp)
    faults.push("ORDERS_BROKER_URL should be the broker's address, as https://host/path, without a password");
  const secret = env.ORDERS_BROKER_SECRET ?? "";
  if (secret.length < secretMin) faults.push(`ORDERS_BROKER_SECRET should have ${secretMin} characters or more`);
  const windowMs = integerReader(env, faults)("ORDERS_BROKER_WINDOW_MS", 30_000, [0, hourMs]);
  const dedupes = yes(env, faults)("ORDERS_BROKER_DEDUPES");
  const limitsSlippage = yes(env, faults)("ORDERS_BROKER_LIMITS_SLIPPAGE");
  return { kind: "http", url: url ?? new URL("http://invalid/"), secret, dedupes, windowMs, limitsSlippage };
}

/** "lost-after=0.1,slow=0.05": what goes wrong with the paper broker, and how often. */
function readChances(env: Env, faults: string[]): ReadonlyMap<Fault, number> {
  const chances = new Map<Fault, number>();
  for (const pair of (env.ORDERS_PAPER_FAULTS ?? "").split(",").filter(Boolean)) {
    const [name = "", chance = ""] = pair.trim().split("=");
    if (isFault(name) && /^(?:0(?:\.\d+)?|1)$/.test(chance)) chances.set(name, Number(chance));
    else faults.push(`ORDERS_PAPER_FAULTS should name chances from 0 to 1, as slow=0.1, of ${faultNames.join(", ")}`);
  }
  return chances;
}

function readWaits(env: Env, faults: string[]): readonly number[] {
  const said = env.ORDERS_RETRY_SECONDS;
  if (!said) return usualWaitsMs;
  const waits = said.split(",").map(Number);
  const good = waits.length <= 20 && waits.every((wait) => wait >= 0.01 && wait <= 86_400);
  if (!good) faults.push("ORDERS_RETRY_SECONDS should be 1 to 20 waits in seconds, as 5,10,20,40,80,160");
  return good ? waits.map((wait) => wait * 1_000) : usualWaitsMs;
}
