/**
 * IDs of tickets: `<mode>.<28 characters>`.
 *
 * An ID names its mode, so the ticket's place in a cluster follows from the ID alone. Its last 9 bytes are a keyed hash (HMAC)
 * of mode, user and the random part. So the service recognizes an ID that it made for a user even when nothing else is known
 * of the ticket, and nobody without the secret can make one up. A ticket that is stored belongs to the user it is stored with,
 * whatever its ID proves.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";

/** A mode's name: short, and safe in a path, a key and a file. */
export const modePattern = "[a-z0-9][a-z0-9_-]{0,31}";
export const ticketIdPattern = `${modePattern}\\.[A-Za-z0-9_-]{28}`;

const whole = new RegExp(`^(${modePattern})\\.([A-Za-z0-9_-]{28})$`);

// 21 bytes are 28 characters with nothing left over: 12 that nobody can guess, 9 that nobody can compute without the secret.
const randomLength = 12;
const proofLength = 9;

export interface TicketIds {
  create(mode: string, userId: string): string;
  /** Whether this service made the ID for this user, with any of its secrets. */
  isOwn(ticketId: string, userId: string): boolean;
}

/**
 * The first secret makes IDs and all of them check, so a secret is replaced by putting a new one in front. Without any, IDs are
 * random and none is recognized.
 */
export function openTicketIds(secrets: readonly Buffer[]): TicketIds {
  const keys = secrets.map(keyOf);
  const [first] = keys;
  return {
    create(mode, userId) {
      const random = randomBytes(randomLength);
      const proof = first ? proofOf(first, { mode, userId, random }) : randomBytes(proofLength);
      return `${mode}.${Buffer.concat([random, proof]).toString("base64url")}`;
    },
    isOwn(ticketId, userId) {
      const [, mode, text] = whole.exec(ticketId) ?? [];
      if (mode === undefined || text === undefined) return false;
      const bytes = Buffer.from(text, "base64url");
      const [random, proof] = [bytes.subarray(0, randomLength), bytes.subarray(randomLength)];
      return keys.some((key) => timingSafeEqual(proof, proofOf(key, { mode, userId, random })));
    },
  };
}

/** The mode that an id names; none when it is no id of a ticket. */
export const modeOf = (ticketId: string): string | undefined => whole.exec(ticketId)?.[1];

/** Derived, so that another use of the same secret has another key. */
const keyOf = (secret: Buffer): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, "", "todoke matchmaking ticket ids", 32));

interface Proven {
  readonly mode: string;
  readonly userId: string;
  readonly random: Buffer;
}

function proofOf(key: Buffer, { mode, userId, random }: Proven): Buffer {
  const text = JSON.stringify([mode, userId, random.toString("hex")]);
  return createHmac("sha256", key).update(text).digest().subarray(0, proofLength);
}
