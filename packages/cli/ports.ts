/** Whether a port of this machine can still be had. */
import { isPortFree } from "@todoke/engines";
import { CommandFailed } from "./faults.ts";
import type { Port } from "./settings.ts";

export async function busyOf(ports: readonly Port[]): Promise<Port[]> {
  const free = await Promise.all(ports.map((port) => isPortFree(port.number)));
  return ports.filter((_, at) => !free[at]);
}

/** Names every port that is taken, and how to use another, before anything is started. */
export async function refuseBusy(ports: readonly Port[]): Promise<void> {
  const busy = await busyOf(ports);
  if (busy.length === 0) return;
  const faults = busy.map((port) => `Port ${port.number} (${port.of}) is in use: ${wayOut(port)}`);
  throw new CommandFailed(faults.join("\n  "));
}

export const wayOut = (port: Port): string => `stop what listens there, or set ${port.variable} to another port.`;
