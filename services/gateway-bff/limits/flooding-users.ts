/**
 * The users of refused requests, by credential: while a user is over the limit, no session is looked up for them.
 *
 * A session always belongs to one user. A request with an ended session gets 429 instead of 401 while its user is refused.
 */
import { hash } from "node:crypto";
import { BoundedMap } from "@todoke/http";
import type { FastifyRequest } from "fastify";

const credentialsMax = 10_000;

export class FloodingUsers {
  /** By the hash of the credential, so that no token is stored. */
  readonly #userIds = new BoundedMap<string, string>(credentialsMax);

  find(request: FastifyRequest): string | undefined {
    return this.#userIds.size === 0 ? undefined : this.#userIds.get(hashCredential(request));
  }

  add(request: FastifyRequest, userId: string): void {
    this.#userIds.set(hashCredential(request), userId);
  }
}

function hashCredential({ headers }: FastifyRequest): string {
  return hash("sha256", `${headers.authorization ?? ""}\n${headers.cookie ?? ""}`, "base64url");
}
