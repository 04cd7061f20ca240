/**
 * Ticket IDs: `<mode>.<28 characters>`.
 *
 * An ID contains its mode, so the ticket's Redis slot follows from the ID alone. Its last 9 bytes are a keyed hash (HMAC) of
 * mode, user and the random part: the service recognizes an ID that it made for a user even if the ticket is lost, and IDs
 * cannot be made up without the secret. A stored ticket belongs to the user it is stored with; its ID proves nothing more.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { modePattern } from "@todoke/contracts/api";

const idPattern = new RegExp(`^(${modePattern})\\.([A-Za-z0-9_-]{28})$`);

// 21 bytes are exactly 28 characters of base64url: 12 random bytes and 9 of the HMAC.
const randomLength = 12;
const proofLength = 9;

export interface TicketIds {
  create(mode: string, userId: string): string;
  /** Whether this service made the ID for this user, with any of its secrets. */
  isOwn(ticketId: string, userId: string): boolean;
}

/**
 * The first secret makes IDs and all of them check IDs, so a new secret is put in front of the old one. Without secrets, IDs are
 * random and none is recognized.
 */
export function openTicketIds(secrets: readonly Buffer[]): TicketIds {
  const keys = secrets.map(deriveKey);
  const [first] = keys;
  return {
    create(mode, userId) {
      const random = randomBytes(randomLength);
      const proof = first ? computeProof(first, { mode, userId, random }) : randomBytes(proofLength);
      return `${mode}.${Buffer.concat([random, proof]).toString("base64url")}`;
    },
    isOwn(ticketId, userId) {
      const [, mode, text] = idPattern.exec(ticketId) ?? [];
      if (mode === undefined || text === undefined) return false;
      const bytes = Buffer.from(text, "base64url");
      const [random, proof] = [bytes.subarray(0, randomLength), bytes.subarray(randomLength)];
      return keys.some((key) => timingSafeEqual(proof, computeProof(key, { mode, userId, random })));
    },
  };
}

/** Returns undefined if the text is not a ticket ID. */
export const parseMode = (ticketId: string): string | undefined => idPattern.exec(ticketId)?.[1];

/** A derived key, so that another use of the same secret would have another key. */
const deriveKey = (secret: Buffer): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, "", "todoke matchmaking ticket ids", 32));

interface ProofInput {
  readonly mode: string;
  readonly userId: string;
  readonly random: Buffer;
}

function computeProof(key: Buffer, { mode, userId, random }: ProofInput): Buffer {
  const text = JSON.stringify([mode, userId, random.toString("hex")]);
  return createHmac("sha256", key).update(text).digest().subarray(0, proofLength);
}
