/**
 * `todoke demo`: everything that `todoke dev` runs, with the arena shop for players and example data for the console. It runs on
 * the embedded database only.
 */
import { UsageError } from "../errors.ts";
import type { LoadedService } from "../select-services.ts";
import type { Env } from "../services.ts";
import { getDemoPort } from "../settings.ts";
import type { StopSignal } from "../stop-signal.ts";
import { leaveOrderInDoubt } from "./order-in-doubt.ts";
import { beginSeeding, endSeeding, seed } from "./seed.ts";
import { type Shop, startShop } from "./shop.ts";
import { type Handler, startSite } from "./site.ts";
import { openWebhook, webhookEnv, webhookPath } from "./webhook.ts";

/** The demo has users and passwords that everybody knows. */
export function rejectForeignEngines(env: Env): void {
  if (env.DATABASE_URL || env.OIDC_ISSUER)
    throw new UsageError(
      "The demo runs on the embedded database and with the demo users: unset DATABASE_URL and OIDC_ISSUER",
    );
}

/** `given` with what the services need to be part of the demo. */
export function demoEnv(given: Env): Env {
  const { number } = getDemoPort(given);
  return { GATEWAY_BFF_ORIGIN: `http://localhost:${number}`, ...webhookEnv(given, number), ...given };
}

export interface Demo extends AsyncDisposable {
  /** Creates the example data if it is missing, and starts the shop. */
  open(): Promise<OpenShop>;
}

export interface OpenShop {
  /** Its page. */
  readonly url: string;
  /** Its back-end. */
  readonly pid: number | undefined;
}

export interface DemoOptions {
  readonly loaded: readonly LoadedService[];
  /** Of the services, which do not run yet. */
  readonly env: Env;
  readonly stop: StopSignal;
}

export async function startDemo({ loaded, env, stop }: DemoOptions): Promise<Demo> {
  await using started = new AsyncDisposableStack();
  const isSeeding = await beginSeeding();
  if (isSeeding) await leaveOrderInDoubt(loaded, env, stop);
  let shop: Shop | undefined;
  const gateway = new URL(env.GATEWAY_BFF_URL ?? "");
  const target = (path: string) => (/^\/shop(\/|$)/.test(path) ? shop?.url : gateway);
  const webhook = openWebhook({ isBroken: isSeeding });
  const handlers = { "/": toShop, [webhookPath]: webhook.handle };
  started.use(await startSite({ port: getDemoPort(env).number, target, handlers }));
  const parts = started.move();
  return {
    async open() {
      if (isSeeding) {
        await seed(env);
        await webhook.repair();
        await endSeeding();
      }
      shop = parts.use(startShop(shopEnv(env)));
      await shop.ready;
      return { url: `${env.GATEWAY_BFF_ORIGIN}/shop/`, pid: shop.pid };
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const toShop: Handler = (_request, response) => void response.writeHead(302, { location: "/shop/" }).end();

/** Only what it needs: the shop is a program of somebody else. */
const shopEnv = ({ PATH, DATABASE_URL, GATEWAY_BFF_URL, POINTS_URL, ENTITLEMENT_URL }: Env): Env => ({
  ...{ PATH, DATABASE_URL, POINTS_URL, ENTITLEMENT_URL },
  TODOKE_GATEWAY: GATEWAY_BFF_URL,
  SESSION_COOKIE: "todoke", // On loopback the cookie has no prefix.
});
