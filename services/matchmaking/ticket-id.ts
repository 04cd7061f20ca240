/**
 * Ids of tickets: `<mode>.<28 characters>`.
 *
 * An id names its mode, so that the ticket's place in a cluster is known from it alone. And it proves whose it is: part of
 * it is a hash of the user and the rest. So a queue that came back empty can still tell its owner that the ticket is over,
 * and tell everybody else that there is no such ticket, without having kept a word about it.
 */
import { hash, randomBytes } from "node:crypto";

/** A mode's name: short, and safe in a path, a key and a file. */
export const modePattern = "[a-z0-9][a-z0-9_-]{0,31}";
export const ticketIdPattern = `${modePattern}\\.[A-Za-z0-9_-]{28}`;

const whole = new RegExp(`^(${modePattern})\\.([A-Za-z0-9_-]{28})$`);

// 21 bytes are 28 characters with nothing left over: 12 that nobody can guess, 9 that nobody can make fit another user.
const randomLength = 12;
const proofLength = 9;

export function newTicketId(mode: string, userId: string): string {
  const random = randomBytes(randomLength);
  return `${mode}.${Buffer.concat([random, proof(mode, userId, random)]).toString("base64url")}`;
}

/** The mode that an id names; none when it is no id of a ticket. */
export const modeOf = (ticketId: string): string | undefined => whole.exec(ticketId)?.[1];

export function isOwnTicket(ticketId: string, userId: string): boolean {
  const [, mode, text] = whole.exec(ticketId) ?? [];
  if (mode === undefined || text === undefined) return false;
  const bytes = Buffer.from(text, "base64url");
  return bytes.subarray(randomLength).equals(proof(mode, userId, bytes.subarray(0, randomLength)));
}

function proof(mode: string, userId: string, random: Buffer): Buffer {
  return hash("sha256", JSON.stringify([mode, userId, random.toString("hex")]), "buffer").subarray(0, proofLength);
}
