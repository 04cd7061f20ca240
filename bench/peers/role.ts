/** What a role is given, and what it may say. */
import type { Peer, Site } from "./peer.ts";

/** A role says in between what others wait for ("ready", "holding"), and returns its answer. */
export type Role = (play: {
  readonly peer: Peer;
  readonly site: Site;
  readonly options: Readonly<Record<string, number>>;
  readonly say: (what: string) => void;
}) => Promise<unknown>;

export const option = (options: Readonly<Record<string, number>>, name: string): number => {
  const value = options[name];
  if (value === undefined) throw new Error(`this role needs to be told "${name}"`);
  return value;
};
