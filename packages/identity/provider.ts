/** Starts the provider and serves it on loopback, and nowhere else. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { JWK } from "oidc-provider";
import { type Client, configurationOf, newCookieKey } from "./configuration.ts";
import { Provider } from "./library.ts";
import { logIn, type Middleware } from "./log-in.ts";
import { openMemory } from "./memory.ts";
import { addKey, readKeys } from "./signing-keys.ts";
import { passwordCheck, type User } from "./users.ts";

export type { Client } from "./configuration.ts";

export interface IdentityProviderOptions {
  /** An address of this machine that nobody else can reach: its passwords are no secret. */
  readonly host?: "127.0.0.1" | "::1" | "localhost";
  /** 0: any free one. */
  readonly port?: number;
  readonly clients: readonly Client[];
  readonly users: readonly User[];
  /** Where signing keys are kept, so that they survive a restart. All else is forgotten with the process. */
  readonly keysFile?: string;
  /** How long the answer to a wrong password is held back. */
  readonly wrongPasswordMs?: number;
  /** Hears what goes wrong here, and that a client could not be told of a log-out. */
  readonly onError?: (error: unknown) => void;
}

export interface IdentityProvider extends AsyncDisposable {
  /** "http://127.0.0.1:8089" */
  readonly issuer: string;
  /** Signs with a new key from now on. The last ones stay published. */
  rotateKeys(): Promise<void>;
}

const loopback: readonly string[] = ["127.0.0.1", "::1", "localhost"];

export async function startIdentityProvider(options: IdentityProviderOptions): Promise<IdentityProvider> {
  const { host = "127.0.0.1", port = 0, clients, users, keysFile } = options;
  if (!loopback.includes(host)) {
    throw new Error(
      `the OpenID provider for trying out listens on loopback only, not on ${host}: its passwords are no secret`,
    );
  }
  const { wrongPasswordMs = 500, onError = console.error } = options;
  const lasting = { clients, users, memory: openMemory(), cookieKey: newCookieKey() };
  const checkPassword = passwordCheck(users, wrongPasswordMs);

  // The keys of a provider are fixed when it is made: other keys are another provider, around the same memory.
  const made = (issuer: string, keys: readonly JWK[]): RequestListener => {
    const provider = new Provider(issuer, configurationOf({ ...lasting, keys }));
    provider.use(guarded(issuer));
    provider.use(logIn(provider, checkPassword));
    provider.on("server_error", (_ctx, error) => onError(error));
    provider.on("backchannel.error", (_ctx, error) => onError(error));
    return provider.callback();
  };

  let keys = await readKeys(keysFile);
  const server = createServer({ requestTimeout: 10_000, maxHeaderSize: 16_384 });
  server.listen(port, host);
  await once(server, "listening");
  const issuer = `http://${host === "::1" ? "[::1]" : host}:${(server.address() as AddressInfo).port}`;
  let current = made(issuer, keys);
  server.on("request", (request, reply) => current(request, reply));

  const rotate = async () => {
    keys = await addKey(keys, keysFile);
    current = made(issuer, keys);
  };
  // One after the other, or the key of one would be missing from the keys of the next.
  let rotated = Promise.resolve();

  return {
    issuer,
    rotateKeys() {
      rotated = rotated.then(rotate, rotate);
      return rotated;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** A page elsewhere that has had its name point here (DNS rebinding) gets nothing: it asks for another host. */
const guarded =
  (issuer: string): Middleware =>
  async (ctx, next) => {
    if (ctx.host !== new URL(issuer).host) ctx.throw(421);
    ctx.set({ "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin" });
    await next();
  };
