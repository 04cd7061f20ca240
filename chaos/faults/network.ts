/**
 * What happens between processes and what they talk to: connections are reset, slow, or swallow everything; and they are
 * cut at the one moment that matters, when a commit, a publication or an answer is decided and nobody hears of it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Wire } from "@todoke/kernel/testing";
import type { Harness } from "../harness.ts";
import { serviceNamed } from "../services/index.ts";
import type { BusKind } from "../settings.ts";
import { everyProcess, type Fault, lasting, type Plan, type Step, slotOf } from "./fault.ts";

/** A cut that no request has come by for by then is called off. */
const awaitedMs = 4_000;

/** What is said to a broker when an event is published, and when one is acknowledged (RabbitMQ does that in binary). */
const busWords: Record<BusKind, { readonly publishes: string; readonly consumes?: string }> = {
  postgres: { publishes: "bus publish", consumes: "settle bus_deliveries" },
  nats: { publishes: "HPUB ", consumes: "+ACK" },
  rabbitmq: { publishes: ".events" },
};

type WireOf = (harness: Harness, step: Step) => Wire | undefined;

const database: WireOf = (harness, step) => slotOf(harness, step).database;
const bus: WireOf = (harness, step) => slotOf(harness, step).busWire;
const http: WireOf = (harness, step) => slotOf(harness, step).http;
const webhook: WireOf = (harness) => harness.webhook;
const orderBroker: WireOf = (harness) => harness.orderBrokerProxy;
const atOrderBroker = () => ["order broker"];

const called = ({ processes }: Plan) =>
  processes.filter(({ service }) => serviceNamed(service).workload).map(({ name }) => name);

/** Everything that is connected is reset. */
const reset = (name: string, wire: WireOf, targets = everyProcess): Fault => ({
  name: `${name} reset`,
  weight: 5,
  targets,
  aftermathMs: 500,
  async inject(harness, step) {
    const cut = wire(harness, step);
    cut?.hiccup();
    return cut !== undefined;
  },
});

const slow = (name: string, wire: WireOf): Fault => ({
  name: `${name} slow`,
  weight: 3,
  targets: everyProcess,
  plan: (random) => ({ forMs: random.between(500, 2_500), detail: { delayMs: random.between(20, 250) } }),
  aftermathMs: 500,
  async inject(harness, step) {
    const slowed = wire(harness, step);
    slowed?.delay(Number(step.detail.delayMs));
    await sleep(step.forMs);
    slowed?.delay(0);
    return slowed !== undefined;
  },
});

/** What was said is lost, so that a connection that comes out of it could only talk nonsense: it is reset then. */
const dark = (name: string, wire: WireOf, how: "swallow" | "deafen"): Fault => ({
  name: `${name} ${how === "swallow" ? "black hole" : "deaf"}`,
  weight: 3,
  targets: everyProcess,
  plan: lasting(500, 3_000),
  aftermathMs: 1_000,
  async inject(harness, step) {
    const dead = wire(harness, step);
    dead?.[how]();
    await sleep(step.forMs);
    dead?.listenAgain();
    dead?.hiccup();
    return dead !== undefined;
  },
});

interface Cut {
  readonly name: string;
  readonly wire: WireOf;
  readonly weight: number;
  readonly targets: Fault["targets"];
  words(about: Plan & { readonly target: string }): readonly string[];
}

/** The connection is lost at one request: before it gets there, or when it is done and its answer is on the way. */
const cut = ({ name, wire, weight, targets, words }: Cut, lose: "request" | "answer"): Fault => ({
  name: `${name} ${lose} lost`,
  weight,
  targets,
  plan: (random, about) => ({ forMs: 0, detail: { at: random.pick(words(about)) } }),
  aftermathMs: 500,
  async inject(harness, step) {
    const armed = wire(harness, step);
    if (!armed) return false;
    const happened = armed.cutNext(String(step.detail.at), lose).then(() => true);
    const calledOff = sleep(awaitedMs, false);
    const did = await Promise.race([happened, calledOff]);
    if (!did) armed.disarm();
    return did;
  },
});

const serviceOf = ({ processes, target }: Plan & { target: string }) =>
  serviceNamed(processes.find(({ name }) => name === target)?.service ?? "");

const commit: Cut = {
  name: "commit",
  wire: database,
  weight: 8,
  targets: everyProcess,
  words: (about) => serviceOf(about).commits,
};

const onTheBus = (role: "publishes" | "consumes", weight: number): Cut => ({
  name: role === "publishes" ? "publish" : "ack",
  wire: bus,
  weight,
  targets: ({ bus, processes }) =>
    busWords[bus][role] === undefined
      ? []
      : processes.filter(({ service }) => serviceNamed(service)[role]).map(({ name }) => name),
  words: ({ bus }) => [busWords[bus][role] ?? ""],
});

const httpCut: Cut = { name: "http", wire: http, weight: 5, targets: called, words: () => ["POST /"] };
const webhookCut: Cut = {
  name: "webhook",
  wire: webhook,
  weight: 3,
  targets: () => ["webhook"],
  words: () => ["POST /"],
};

const orderBrokerCut: Cut = {
  name: "order broker",
  wire: orderBroker,
  weight: 4,
  targets: atOrderBroker,
  words: () => ["POST /orders", "GET /orders/"],
};

const refused: Fault = {
  name: "webhook refused",
  weight: 2,
  targets: () => ["webhook"],
  plan: (random) => ({ forMs: random.between(300, 2_000), detail: { status: random.pick([429, 500, 503]) } }),
  aftermathMs: 1_000,
  async inject({ receiver }, { forMs, detail }) {
    receiver.refuse(Number(detail.status));
    await sleep(forMs);
    receiver.accept();
    return true;
  },
};

export const networkFaults: readonly Fault[] = [
  reset("database", database),
  slow("database", database),
  dark("database", database, "swallow"),
  dark("database", database, "deafen"),
  cut(commit, "request"),
  cut(commit, "answer"),
  reset("bus", bus),
  slow("bus", bus),
  dark("bus", bus, "swallow"),
  dark("bus", bus, "deafen"),
  cut(onTheBus("publishes", 4), "request"),
  cut(onTheBus("publishes", 7), "answer"),
  cut(onTheBus("consumes", 4), "request"),
  cut(onTheBus("consumes", 4), "answer"),
  reset("http", http, called),
  cut(httpCut, "request"),
  cut(httpCut, "answer"),
  cut(webhookCut, "request"),
  cut(webhookCut, "answer"),
  reset("order broker", orderBroker, atOrderBroker),
  cut(orderBrokerCut, "request"),
  cut(orderBrokerCut, "answer"),
  refused,
];
