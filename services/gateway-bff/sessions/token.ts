/**
 * What a client holds: 256 random bits, opaque. A store is given the SHA-256 of it and nothing more; so a look-up compares
 * hashes, and how long it takes tells nobody anything about a token.
 */
import { hash, randomBytes } from "node:crypto";

/** The prefix lets people, and scanners for leaked secrets, see what it is. */
const form = /^tds_[A-Za-z0-9_-]{43}$/;

export const newToken = (): string => `tds_${randomBytes(32).toString("base64url")}`;

/** The 32 bytes under which a session is kept; undefined for what no session can have, which needs no look-up. */
export const tokenHashOf = (token: string): Buffer | undefined =>
  form.test(token) ? hash("sha256", token, "buffer") : undefined;
