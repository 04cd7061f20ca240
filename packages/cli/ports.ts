/** Checks whether the ports of services are free. */
import { isPortFree } from "@todoke/engines";
import { CommandFailed, formatError } from "./errors.ts";
import type { Port } from "./settings.ts";

export async function findBusyPorts(ports: readonly Port[]): Promise<Port[]> {
  const free = await Promise.all(ports.map(isFree));
  return ports.filter((_, at) => !free[at]);
}

async function isFree({ number, of, host }: Port): Promise<boolean> {
  try {
    return await isPortFree(number, host);
  } catch (error) {
    const todo = "Set its host to an address of this machine, or to 0.0.0.0 for all of them.";
    throw new CommandFailed(`${of} cannot listen on ${host}: ${formatError(error)}. ${todo}`);
  }
}

/** Called before anything starts. The error lists every busy port and how to change it. */
export async function rejectBusyPorts(ports: readonly Port[]): Promise<void> {
  const busy = await findBusyPorts(ports);
  if (busy.length === 0) return;
  const errors = busy.map((port) => `Port ${port.number} (${port.of}) is in use: ${portRemedy(port)}`);
  throw new CommandFailed(errors.join("\n  "));
}

export const portRemedy = (port: Port): string =>
  `stop the process that listens on it, or set ${port.variable} to another port.`;
