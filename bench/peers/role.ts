/** The interface of a role: one measurement by one process. */
import type { Peer, RoundSetup } from "./peer.ts";

/** A role reports progress that other processes wait for ("ready", "holding") and returns its result. */
export type Role = (context: {
  readonly peer: Peer;
  readonly setup: RoundSetup;
  readonly options: Readonly<Record<string, number>>;
  readonly report: (name: string) => void;
}) => Promise<unknown>;

export const option = (options: Readonly<Record<string, number>>, name: string): number => {
  const value = options[name];
  if (value === undefined) throw new Error(`this role needs the option "${name}"`);
  return value;
};
