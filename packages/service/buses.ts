/**
 * The buses of a service: one for each address that its subjects have, usually one. The name of a subject decides which
 * variable gives it a bus of its own, so a producer and its consumers that have the same variables always agree.
 */
import { type EventType, events } from "@todoke/contracts";
import type { Env } from "@todoke/http";
import type { BusLog, EventBus, TransactionalPublisher } from "@todoke/kernel/bus";
import type { Db } from "@todoke/kernel/db";
import { readServerUrl } from "./server-urls.ts";
import { envName } from "./settings.ts";

/** A subject of @todoke/contracts: "account.events". */
export type Subject = (typeof events)[EventType]["subject"];

/** Every subject, each once. */
export const allSubjects: readonly Subject[] = [...new Set(Object.values(events).map(({ subject }) => subject))];

/** The variable that gives the subject a bus of its own: POINTS_RESERVATION_BUS_URL of "points.reservations". */
export function busVariable(subject: Subject): string {
  const [service = "", topic = ""] = subject.split(".");
  return envName(service, `${topic.replace(/s$/, "")}_bus_url`);
}

/** The variables that may name the bus of the subject; the first that is set decides. */
export function busVariables(subject: Subject): readonly string[] {
  const [service = ""] = subject.split(".");
  return [...new Set([busVariable(subject), envName(service, "event_bus_url"), "EVENT_BUS_URL"])];
}

/** Where the bus of a subject is, and the variable that says so. */
export interface BusAddress {
  readonly variable: string;
  readonly url: string;
}

/**
 * The bus of the subject: its own, that of the events of its service, or that of all services. Without any, the bus is in the
 * database that all services share; in the database of one service, consumers of other services would not see its events.
 */
export function findBus(subject: Subject, env: Env): BusAddress | undefined {
  for (const variable of [...busVariables(subject), "DATABASE_URL"]) {
    const url = readServerUrl(env, variable);
    if (url) return { variable, url };
  }
  return undefined;
}

/** The request of a service for a bus. */
export interface BusRequest extends BusLog {
  readonly url: string;
  /** The subjects that it publishes there. */
  readonly emits: readonly Subject[];
}

export interface ServiceSubjects {
  readonly emits: readonly Subject[];
  readonly consumes: readonly Subject[];
}

/** A connected bus, and the subjects of the service on it. */
export interface ServiceBus extends ServiceSubjects {
  readonly url: string;
  readonly bus: EventBus;
  /** For errors that no caller awaits. */
  onError(error: unknown): void;
}

/** A bus as `openBuses` gets it. */
export type OpenedBus = Pick<ServiceBus, "bus" | "onError">;

/** Opens every bus of the subjects, one after the other. The bus of the first subject is first. */
export async function openBuses(
  { emits, consumes }: ServiceSubjects,
  env: Env,
  open: (bus: Pick<BusRequest, "url" | "emits">) => Promise<OpenedBus>,
): Promise<readonly ServiceBus[]> {
  const urlOf = (subject: Subject) => findBus(subject, env)?.url ?? "";
  const buses: ServiceBus[] = [];
  for (const url of new Set([...emits, ...consumes].map(urlOf))) {
    const isThere = (subject: Subject) => urlOf(subject) === url;
    const there = { emits: emits.filter(isThere), consumes: consumes.filter(isThere) };
    buses.push({ ...there, url, ...(await open({ url, emits: there.emits })) });
  }
  return buses;
}

/** Publishes in transactions of the service's database, if the only bus of its events is in that database. */
export async function openPublisher(buses: readonly ServiceBus[], db: Db): Promise<TransactionalPublisher | undefined> {
  const [first, ...others] = buses.filter(({ emits }) => emits.length > 0);
  return others.length === 0 ? first?.bus.openPublisher?.(db) : undefined;
}
