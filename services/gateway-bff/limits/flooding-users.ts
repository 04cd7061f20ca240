/**
 * Whose session a request comes with, for users who were refused: while they are, no session has to be looked up for them.
 *
 * A session belongs to one user for ever. One that has ended meanwhile is answered 429 instead of 401, for as long as its
 * user is refused.
 */
import { hash } from "node:crypto";
import type { FastifyRequest } from "fastify";

const credentialsMax = 10_000;

export class FloodingUsers {
  /** By the hash of what the request proves itself with: no token is kept. The oldest comes first. */
  readonly #userIds = new Map<string, string>();

  find(request: FastifyRequest): string | undefined {
    return this.#userIds.size === 0 ? undefined : this.#userIds.get(hashOf(request));
  }

  remember(request: FastifyRequest, userId: string): void {
    this.#userIds.set(hashOf(request), userId);
    if (this.#userIds.size <= credentialsMax) return;
    const [oldest = ""] = this.#userIds.keys();
    this.#userIds.delete(oldest);
  }
}

function hashOf({ headers }: FastifyRequest): string {
  return hash("sha256", `${headers.authorization ?? ""}\n${headers.cookie ?? ""}`, "base64url");
}
