/**
 * Session tokens: 256 random bits, opaque. A store gets only the SHA-256, so a look-up compares hashes, and its duration
 * reveals nothing about a token.
 */
import { hash, randomBytes } from "node:crypto";

/** The prefix lets people and secret scanners recognize it. */
const tokenPattern = /^tds_[A-Za-z0-9_-]{43}$/;

export const newToken = (): string => `tds_${randomBytes(32).toString("base64url")}`;

/** Returns undefined for a text that cannot be a token, which needs no look-up. */
export const hashToken = (token: string): Buffer | undefined =>
  tokenPattern.test(token) ? hash("sha256", token, "buffer") : undefined;
