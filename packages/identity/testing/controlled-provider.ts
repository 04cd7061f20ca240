/** A provider that a test can stop and start, with the users of `npm start` and the gateway as its client. */
import { randomBytes } from "node:crypto";
import { demoUsers } from "../demo-users.ts";
import { startIdentityProvider } from "../provider.ts";

export interface ControlledProvider extends AsyncDisposable {
  readonly issuer: string;
  readonly client: { readonly clientId: string; readonly clientSecret: string };
  /** The gateway, as browsers reach it. */
  readonly origin: string;
  /** The subject of the user `admin`. */
  readonly adminSubject: string;
  rotateKeys(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
}

export interface ControlledProviderOptions {
  readonly origin: string;
  readonly backchannelLogoutUri: string;
}

/** Starts the embedded provider. Its sessions and keys are lost when it stops. */
export async function startControlledProvider(options: ControlledProviderOptions): Promise<ControlledProvider> {
  const { origin, backchannelLogoutUri } = options;
  const client = { clientId: "todoke", clientSecret: randomBytes(24).toString("base64url") };
  const registered = {
    ...client,
    redirectUris: [`${origin}/login/callback`],
    postLogoutRedirectUris: [`${origin}/`],
    backchannelLogoutUri,
  };
  const open = (port: number) =>
    startIdentityProvider({ port, clients: [registered], users: demoUsers, wrongPasswordMs: 10 });
  let running: Awaited<ReturnType<typeof open>> | undefined = await open(0);
  const { issuer } = running;
  const stop = async () => {
    await running?.[Symbol.asyncDispose]();
    running = undefined;
  };
  return {
    issuer,
    client,
    origin,
    adminSubject: "admin",
    rotateKeys: async () => running?.rotateKeys(),
    stop,
    start: async () => {
      running ??= await open(Number(new URL(issuer).port));
    },
    [Symbol.asyncDispose]: stop,
  };
}
