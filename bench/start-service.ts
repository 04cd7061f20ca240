/** Starts a service, or a baseline, as a process of its own on a free port. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { env as apiKeys } from "./databases.ts";

export interface Service extends AsyncDisposable {
  readonly url: string;
  cpuMicroseconds(): Promise<number>;
}

export type ServiceKind =
  | "entitlement"
  | "notification"
  | "account"
  | "matchmaking"
  | "orders"
  | "gateway-bff"
  | "points"
  | "plain"
  | "hello"
  | "guarded";

export async function startService(kind: ServiceKind, more: Record<string, string>): Promise<Service> {
  const services = ["ENTITLEMENT", "NOTIFICATION", "ACCOUNT", "MATCHMAKING", "GATEWAY_BFF", "POINTS", "ORDERS"];
  const ports = services.map((name) => [`${name}_PORT`, "0"]);
  const defaults = { ...Object.fromEntries(ports), LOG_LEVEL: "warn" };
  const env = { ...defaults, ...apiKeys, ...more };
  const child = fork(new URL("./service.ts", import.meta.url), [kind], { env, execArgv: [] });
  const [url] = (await once(child, "message")) as [string];
  return {
    url,
    async cpuMicroseconds() {
      child.send("cpu time");
      return ((await once(child, "message")) as [number])[0];
    },
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await once(child, "exit");
    },
  };
}
