/**
 * An OpenID provider that can lie. By default it is honest and logs every browser in as `subject`, without asking; a test
 * tells it what to say instead: in its tokens, in the answer that the browser carries, or in place of a whole answer.
 */
import { hash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { freePort } from "@todoke/kernel/testing";
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload } from "jose";

export interface Token {
  readonly header: { alg: string; kid?: string; typ?: string; [name: string]: unknown };
  readonly claims: JWTPayload;
}

export interface Lies {
  /** Put over the honest claims of ID tokens; undefined takes one away. */
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  /** Makes the whole ID token. */
  idToken?: (honest: Token) => string | Promise<string>;
  /** Changes what the browser carries back. */
  callback?: (answer: URLSearchParams) => void;
  metadata?: Record<string, unknown>;
  userInfo?: Record<string, unknown>;
  /** Answers in place of what is at a path, or lets the honest answer be when it returns false. */
  instead?: Record<string, Answering>;
}

export type Answering = (response: ServerResponse) => unknown;

interface Key {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
}

export const clientId = "todoke";
export const clientSecret = "a secret/of:this test";

export async function startLyingProvider(lies: Lies = {}) {
  let keys = [await newKey()];
  const calls = new Map<string, number>();
  const codes = new Map<string, { nonce: string; challenge: string; redirectUri: string }>();
  const refreshTokens = new Map<string, { live: boolean }>();
  /** Every token and code that was ever handed out: none of them may be seen outside. */
  const secrets: string[] = [];
  const revoked: string[] = [];
  const self = { subject: "alice", lies };

  const kept = <T extends string>(secret: T): T => {
    secrets.push(secret);
    return secret;
  };
  const currentKey = () => keys.at(-1) as Key;

  /** Signs any value; a library would refuse many of those tested here. */
  async function signed({ header, claims }: Token): Promise<string> {
    const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
    const bytes = await crypto.subtle.sign(
      { name: "ECDSA", hash: "SHA-256" },
      currentKey().privateKey,
      Buffer.from(text),
    );
    return `${text}.${Buffer.from(bytes).toString("base64url")}`;
  }

  async function idToken(nonce?: string): Promise<string> {
    const now = Math.floor(Date.now() / 1_000);
    const honest = {
      iss: issuer,
      aud: clientId,
      sub: self.subject,
      iat: now,
      exp: now + 300,
      sid: "sid-1",
      ...(nonce && { nonce }),
    };
    const header = { alg: "ES256", kid: currentKey().kid, typ: "JWT", ...self.lies.header };
    const token = { header, claims: without({ ...honest, ...self.lies.claims }) };
    return kept(await (self.lies.idToken ?? signed)(token));
  }

  async function tokens(nonce?: string) {
    const refreshToken = kept(`refresh-${randomUUID()}`);
    refreshTokens.set(refreshToken, { live: true });
    return {
      access_token: kept(`access-${randomUUID()}`),
      token_type: "Bearer",
      expires_in: 600,
      refresh_token: refreshToken,
      id_token: await idToken(nonce),
    };
  }

  function authorize(url: URL, response: ServerResponse): void {
    const { state = "", nonce = "", code_challenge = "", redirect_uri = "" } = Object.fromEntries(url.searchParams);
    const code = kept(`code-${randomUUID()}`);
    codes.set(code, { nonce, challenge: code_challenge, redirectUri: redirect_uri });
    const answer = new URLSearchParams({ code, state, iss: issuer });
    self.lies.callback?.(answer);
    response.writeHead(302, { location: `${redirect_uri}?${answer}` }).end();
  }

  async function token(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = Object.fromEntries(new URLSearchParams(await text(request)));
    if (!isClient(request.headers.authorization)) return json(response, { error: "invalid_client" }, 401);
    const spent = () => json(response, { error: "invalid_grant" }, 400);
    if (form.grant_type === "refresh_token") {
      const known = refreshTokens.get(form.refresh_token ?? "");
      if (!known?.live) return spent();
      known.live = false;
      return json(response, await tokens());
    }
    const known = codes.get(form.code ?? "");
    codes.delete(form.code ?? "");
    const proven = hash("sha256", form.code_verifier ?? "", "base64url") === known?.challenge;
    if (!known || !proven || form.redirect_uri !== known.redirectUri) return spent();
    return json(response, await tokens(known.nonce));
  }

  const routes: Record<string, (request: IncomingMessage, response: ServerResponse, url: URL) => unknown> = {
    "/.well-known/openid-configuration": (_request, response) =>
      json(response, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        jwks_uri: `${issuer}/jwks`,
        end_session_endpoint: `${issuer}/logout`,
        revocation_endpoint: `${issuer}/revoke`,
        response_types_supported: ["code"],
        id_token_signing_alg_values_supported: ["ES256", "HS256", "none"],
        authorization_response_iss_parameter_supported: true,
        ...self.lies.metadata,
      }),
    "/authorize": (_request, response, url) => authorize(url, response),
    "/token": (request, response) => token(request, response),
    "/userinfo": (_request, response) => json(response, { sub: self.subject, ...self.lies.userInfo }),
    "/jwks": async (_request, response) => json(response, { keys: await Promise.all(keys.map(publicPart)) }),
    "/revoke": async (request, response) => {
      revoked.push(new URLSearchParams(await text(request)).get("token") ?? "");
      response.writeHead(200).end();
    },
  };

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    calls.set(url.pathname, (calls.get(url.pathname) ?? 0) + 1);
    const instead = self.lies.instead?.[url.pathname];
    if (instead && (await instead(response)) !== false) return;
    const route = routes[url.pathname];
    if (route) await route(request, response, url);
    else response.writeHead(404).end();
  });
  // A reserved port, so that no other process takes it while the provider is down.
  const port = await freePort();
  const listen = async () => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  const close = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  await listen();
  const issuer = `http://127.0.0.1:${port}`;

  return Object.assign(self, {
    issuer,
    secrets,
    revoked,
    signed,
    callsOf: (path: string) => calls.get(path) ?? 0,
    /** Signs with a new key from now on; the one before is gone. */
    async rotateKeys() {
      keys = [await newKey()];
    },
    publicKey: () => publicPart(currentKey()),
    /** Any other token that it signs. */
    signedWithCurrentKey: (header: Record<string, unknown>, claims: JWTPayload) =>
      signed({ header: { alg: "ES256", kid: currentKey().kid, ...header }, claims }),
    /** Makes all refresh tokens invalid. */
    forgetAll: () => refreshTokens.clear(),
    down: close,
    /** On the same port, with all it knew. */
    up: listen,
    async [Symbol.asyncDispose]() {
      if (server.listening) await close();
    },
  });
}

export type LyingProvider = Awaited<ReturnType<typeof startLyingProvider>>;

async function newKey(): Promise<Key> {
  return { kid: randomUUID(), ...(await generateKeyPair("ES256")) };
}

const publicPart = async ({ kid, publicKey }: Key) => ({
  ...(await exportJWK(publicKey)),
  kid,
  use: "sig",
  alg: "ES256",
});

/** RFC 6749, section 2.3.1: both halves are form-encoded before they are joined. */
function isClient(authorization = ""): boolean {
  const pair = Buffer.from(authorization.replace(/^Basic /, ""), "base64")
    .toString()
    .split(":");
  const [id, secret] = pair.map((part) => new URLSearchParams(`part=${part}`).get("part"));
  return pair.length === 2 && id === clientId && secret === clientSecret;
}

const without = (claims: Record<string, unknown>): JWTPayload =>
  Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined));

function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** Whole answers that no provider should give. */
export const wrongAnswers = {
  hangsUp: (response: ServerResponse) => response.destroy(),
  never: () => undefined,
  serverError: (response: ServerResponse) => response.writeHead(500).end("out of order"),
  notJson: (response: ServerResponse) => response.writeHead(200, { "content-type": "application/json" }).end("<html>"),
  otherType: (response: ServerResponse) => response.writeHead(200, { "content-type": "text/html" }).end("<p>Welcome"),
  megabyte: (response: ServerResponse) =>
    response.writeHead(200, { "content-type": "application/json" }).end(`{"x":"${"x".repeat(1_048_576)}"}`),
  elsewhere: (response: ServerResponse) => response.writeHead(302, { location: "http://127.0.0.1:9/" }).end(),
} as const;
