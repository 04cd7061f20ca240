/** Starts the provider on loopback. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { JWK } from "oidc-provider";
import { buildConfiguration, type Client, createCookieKey } from "./configuration.ts";
import { Provider } from "./library.ts";
import { createLoginMiddleware, type Middleware } from "./login.ts";
import { createMemoryAdapter } from "./memory-adapter.ts";
import { addKey, readKeys } from "./signing-keys.ts";
import { createPasswordCheck, type User } from "./users.ts";

export type { Client } from "./configuration.ts";

export interface IdentityProviderOptions {
  /** Loopback only: the passwords are not secret. */
  readonly host?: "127.0.0.1" | "::1" | "localhost";
  /** 0: a free port. */
  readonly port?: number;
  readonly clients: readonly Client[];
  readonly users: readonly User[];
  /** File for the signing keys, so that they survive a restart. Everything else is lost with the process. */
  readonly keysFile?: string;
  /** Delay of the response to a wrong password. */
  readonly wrongPasswordMs?: number;
  /** Called with server errors and failed back-channel logouts. */
  readonly onError?: (error: unknown) => void;
}

export interface IdentityProvider extends AsyncDisposable {
  /** "http://127.0.0.1:8089" */
  readonly issuer: string;
  /** Creates a new signing key. The previous two stay published. */
  rotateKeys(): Promise<void>;
}

const loopback: readonly string[] = ["127.0.0.1", "::1", "localhost"];

export async function startIdentityProvider(options: IdentityProviderOptions): Promise<IdentityProvider> {
  const { host = "127.0.0.1", port = 0, clients, users, keysFile } = options;
  if (!loopback.includes(host)) {
    throw new Error(`the demo OpenID provider listens on loopback only, not on ${host}: its passwords are not secret`);
  }
  const { wrongPasswordMs = 500, onError = console.error } = options;
  const shared = { clients, users, adapter: createMemoryAdapter(), cookieKey: createCookieKey() };
  const checkPassword = createPasswordCheck(users, wrongPasswordMs);

  // A provider cannot change its keys: new keys need a new provider, with the same adapter.
  const createListener = (issuer: string, keys: readonly JWK[]): RequestListener => {
    const provider = new Provider(issuer, buildConfiguration({ ...shared, keys }));
    provider.use(checkHost(issuer));
    provider.use(createLoginMiddleware(provider, checkPassword));
    provider.on("server_error", (_ctx, error) => onError(error));
    provider.on("backchannel.error", (_ctx, error) => onError(error));
    return provider.callback();
  };

  let keys = await readKeys(keysFile);
  const server = createServer({ requestTimeout: 10_000, maxHeaderSize: 16_384 });
  server.listen(port, host);
  await once(server, "listening");
  const issuer = `http://${host === "::1" ? "[::1]" : host}:${(server.address() as AddressInfo).port}`;
  let current = createListener(issuer, keys);
  server.on("request", (request, reply) => current(request, reply));

  const rotate = async () => {
    keys = await addKey(keys, keysFile);
    current = createListener(issuer, keys);
  };
  // Rotations run one after the other, so that none drops the key of another.
  let rotation = Promise.resolve();

  return {
    issuer,
    rotateKeys() {
      rotation = rotation.then(rotate, rotate);
      return rotation;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** Protects against DNS rebinding: such a request names another host. */
const checkHost =
  (issuer: string): Middleware =>
  async (ctx, next) => {
    if (ctx.host !== new URL(issuer).host) ctx.throw(421);
    ctx.set({ "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin" });
    await next();
  };
