/**
 * Network faults: connections are reset, slow or silent, or are cut at one request: before it arrives, or after it took effect
 * and before its response.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultProxy } from "@todoke/kernel/testing";
import type { Harness } from "../harness.ts";
import { getService, type ServiceUnderTest } from "../services/index.ts";
import type { BusKind } from "../settings.ts";
import { everyProcess, everyService, type Fault, findSlot, lasting, type Plan, type Step } from "./fault.ts";

/** A cut is disarmed if no request arrives within this time. */
const armedMs = 4_000;

/** Bytes that show a publish or an ack on the connection to the message broker (RabbitMQ acks are binary). */
const busMarkers: Record<BusKind, { readonly publishes: string; readonly consumes?: string }> = {
  postgres: { publishes: "bus publish", consumes: "settle bus_deliveries" },
  nats: { publishes: "HPUB ", consumes: "+ACK" },
  rabbitmq: { publishes: ".events" },
};

type ProxySelector = (harness: Harness, step: Step) => FaultProxy | undefined;

const database: ProxySelector = (harness, step) => findSlot(harness, step).database;
const bus: ProxySelector = (harness, step) => findSlot(harness, step).busProxy;
const http: ProxySelector = (harness, step) => findSlot(harness, step).http;
const webhook: ProxySelector = (harness) => harness.webhook;
const orderBroker: ProxySelector = (harness) => harness.orderBrokerProxy;
const atOrderBroker = () => ["order broker"];

const calledProcesses = ({ processes }: Plan) =>
  processes.filter(({ service }) => isCalled(getService(service))).map(({ name }) => name);

const isCalled = ({ workload, isCalled = workload !== undefined }: ServiceUnderTest) => isCalled;

/** Resets all connections. */
const reset = (name: string, proxyOf: ProxySelector, targets = everyProcess): Fault => ({
  name: `${name} reset`,
  weight: 5,
  targets,
  aftermathMs: 500,
  async inject(harness, step) {
    const cut = proxyOf(harness, step);
    cut?.closeConnections();
    return cut !== undefined;
  },
});

const slow = (name: string, proxyOf: ProxySelector): Fault => ({
  name: `${name} slow`,
  weight: 3,
  targets: everyProcess,
  plan: (random) => ({ forMs: random.between(500, 2_500), detail: { delayMs: random.between(20, 250) } }),
  aftermathMs: 500,
  async inject(harness, step) {
    const slowed = proxyOf(harness, step);
    slowed?.delay(Number(step.detail.delayMs));
    await sleep(step.forMs);
    slowed?.delay(0);
    return slowed !== undefined;
  },
});

/** The network between all processes of a service and their database. */
const slowService: Fault = {
  name: "service database slow",
  weight: 2,
  targets: everyService,
  plan: (random) => ({ forMs: random.between(500, 2_500), detail: { delayMs: random.between(20, 100) } }),
  aftermathMs: 500,
  async inject({ slots }, { target, forMs, detail }) {
    const its = slots.filter(({ service }) => service === target).map(({ database: proxy }) => proxy);
    for (const proxy of its) proxy.delay(Number(detail.delayMs));
    await sleep(forMs);
    for (const proxy of its) proxy.delay(0);
    return true;
  },
};

/** Drops bytes for a while, then resets the connections, because their streams are incomplete. */
const dropTraffic = (name: string, proxyOf: ProxySelector, how: "dropAll" | "dropResponses"): Fault => ({
  name: `${name} ${how === "dropAll" ? "black hole" : "responses dropped"}`,
  weight: 3,
  targets: everyProcess,
  plan: lasting(500, 3_000),
  aftermathMs: 1_000,
  async inject(harness, step) {
    const dead = proxyOf(harness, step);
    dead?.[how]();
    await sleep(step.forMs);
    dead?.stopDropping();
    dead?.closeConnections();
    return dead !== undefined;
  },
});

interface Cut {
  readonly name: string;
  readonly proxyOf: ProxySelector;
  readonly weight: number;
  readonly targets: Fault["targets"];
  markers(context: Plan & { readonly target: string }): readonly string[];
}

/** Cuts the connection at one request: before it arrives, or before its response. */
const cut = ({ name, proxyOf, weight, targets, markers }: Cut, lose: "request" | "answer"): Fault => ({
  name: `${name} ${lose === "answer" ? "response" : lose} lost`,
  weight,
  targets,
  plan: (random, context) => ({ forMs: 0, detail: { at: random.pick(markers(context)) } }),
  aftermathMs: 500,
  async inject(harness, step) {
    const armed = proxyOf(harness, step);
    if (!armed) return false;
    const happened = armed.cutNext(String(step.detail.at), lose).then(() => true);
    const calledOff = sleep(armedMs, false);
    const did = await Promise.race([happened, calledOff]);
    if (!did) armed.disarm();
    return did;
  },
});

const serviceOf = ({ processes, target }: Plan & { target: string }) =>
  getService(processes.find(({ name }) => name === target)?.service ?? "");

const commit: Cut = {
  name: "commit",
  proxyOf: database,
  weight: 8,
  targets: everyProcess,
  markers: (context) => serviceOf(context).commits,
};

const onTheBus = (role: "publishes" | "consumes", weight: number): Cut => ({
  name: role === "publishes" ? "publish" : "ack",
  proxyOf: bus,
  weight,
  targets: ({ bus, processes }) =>
    busMarkers[bus][role] === undefined
      ? []
      : processes.filter(({ service }) => getService(service)[role]).map(({ name }) => name),
  markers: ({ bus }) => [busMarkers[bus][role] ?? ""],
});

const httpCut: Cut = { name: "http", proxyOf: http, weight: 5, targets: calledProcesses, markers: () => ["POST /"] };
const webhookCut: Cut = {
  name: "webhook",
  proxyOf: webhook,
  weight: 3,
  targets: () => ["webhook"],
  markers: () => ["POST /"],
};

const orderBrokerCut: Cut = {
  name: "order broker",
  proxyOf: orderBroker,
  weight: 4,
  targets: atOrderBroker,
  markers: () => ["POST /orders", "GET /orders/"],
};

const refused: Fault = {
  name: "webhook rejected",
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
  slowService,
  dropTraffic("database", database, "dropAll"),
  dropTraffic("database", database, "dropResponses"),
  cut(commit, "request"),
  cut(commit, "answer"),
  reset("bus", bus),
  slow("bus", bus),
  dropTraffic("bus", bus, "dropAll"),
  dropTraffic("bus", bus, "dropResponses"),
  cut(onTheBus("publishes", 4), "request"),
  cut(onTheBus("publishes", 7), "answer"),
  cut(onTheBus("consumes", 4), "request"),
  cut(onTheBus("consumes", 4), "answer"),
  reset("http", http, calledProcesses),
  cut(httpCut, "request"),
  cut(httpCut, "answer"),
  cut(webhookCut, "request"),
  cut(webhookCut, "answer"),
  reset("order broker", orderBroker, atOrderBroker),
  cut(orderBrokerCut, "request"),
  cut(orderBrokerCut, "answer"),
  refused,
];
