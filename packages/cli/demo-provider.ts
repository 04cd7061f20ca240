/** The OpenID provider that `todoke dev` brings, with users to try things out as. */
import { dataFolder } from "./data-folder.ts";
import { CommandFailed, reasonOf } from "./faults.ts";
import { complain, say } from "./output.ts";
import type { Env } from "./services.ts";
import { providerPort } from "./settings.ts";

export interface DemoProvider extends AsyncDisposable {
  readonly issuer: string;
  /** "alice / alice-demo": for whoever tries it out. */
  readonly logIns: readonly string[];
}

/** `env` is what the services are handed: there the gateway is its one client. */
export async function startDemoProvider(env: Env): Promise<DemoProvider> {
  // Loaded here, because it brings a web framework along that `todoke help` can do without.
  const { demoUsers, startIdentityProvider } = await import("@todoke/identity");
  const origin = env.GATEWAY_BFF_ORIGIN;
  const gateway = origin && {
    clientId: env.OIDC_CLIENT_ID ?? "",
    clientSecret: env.OIDC_CLIENT_SECRET ?? "",
    redirectUris: [`${origin}/login/callback`],
    postLogoutRedirectUris: [origin, `${origin}/`],
    backchannelLogoutUri: `${env.GATEWAY_BFF_URL}/login/backchannel-logout`,
  };
  try {
    const provider = await startIdentityProvider({
      port: providerPort(env).number,
      clients: gateway ? [gateway] : [],
      users: demoUsers,
      keysFile: `${dataFolder}/provider-keys.json`,
      onError: (error) => complain(`OpenID provider: ${reasonOf(error)}`),
    });
    say(`OpenID provider for trying out at ${provider.issuer}`);
    const logIns = demoUsers.map(({ username, password }) => `${username} / ${password}`);
    return { issuer: provider.issuer, logIns, [Symbol.asyncDispose]: () => provider[Symbol.asyncDispose]() };
  } catch (error) {
    throw new CommandFailed(`The OpenID provider did not start: ${reasonOf(error)}`, { cause: error });
  }
}
