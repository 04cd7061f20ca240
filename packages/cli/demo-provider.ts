/** The OpenID provider of `todoke dev`, with demo users. */
import type { User } from "@todoke/identity";
import { dataFolder } from "./data-folder.ts";
import { CommandFailed, formatError } from "./errors.ts";
import { print, printError } from "./output.ts";
import type { Env } from "./services.ts";
import { getProviderPort } from "./settings.ts";

export interface DemoProvider extends AsyncDisposable {
  readonly issuer: string;
  /** User names and passwords: "alice / alice-demo". */
  readonly logins: readonly string[];
  /** The user of the printed examples. */
  readonly firstUser: User | undefined;
}

/** `env` is the environment of the services. The gateway is the only client. */
export async function startDemoProvider(env: Env): Promise<DemoProvider> {
  // Imported here because it loads a web framework, which `todoke help` does not need.
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
      port: getProviderPort(env).number,
      clients: gateway ? [gateway] : [],
      users: demoUsers,
      keysFile: `${dataFolder}/provider-keys.json`,
      onError: (error) => printError(`OpenID provider: ${formatError(error)}`),
    });
    print(`Demo OpenID provider at ${provider.issuer}`);
    const logins = demoUsers.map(({ username, password }) => `${username} / ${password}`);
    return {
      issuer: provider.issuer,
      logins,
      firstUser: demoUsers[0],
      [Symbol.asyncDispose]: () => provider[Symbol.asyncDispose](),
    };
  } catch (error) {
    throw new CommandFailed(`The OpenID provider did not start: ${formatError(error)}`, { cause: error });
  }
}
