/** The services behind the gateway. A service without an address is not deployed here. */
import type { Signer } from "@todoke/http";
import type { UpstreamUrls } from "../config.ts";
import type { UpstreamName } from "../problems.ts";
import { openUpstream, type Upstream } from "./client.ts";

export type { Call, Upstream } from "./client.ts";
export type { UpstreamResponse } from "./result.ts";

export type Upstreams = Readonly<Record<UpstreamName, Upstream | undefined>> & { readonly account: Upstream };

export interface UpstreamsOptions {
  readonly urls: UpstreamUrls;
  readonly tokenFor: Signer["tokenFor"];
  readonly timeoutMs?: number;
  readonly concurrency?: number;
  readonly queueMax?: number;
}

export function openUpstreams({ urls, ...options }: UpstreamsOptions): Upstreams & AsyncDisposable {
  const open = (name: UpstreamName) => {
    const url = urls[name];
    return url && openUpstream({ ...options, name, url });
  };
  const upstreams = {
    account: openUpstream({ ...options, name: "account", url: urls.account }),
    entitlement: open("entitlement"),
    notification: open("notification"),
    matchmaking: open("matchmaking"),
    points: open("points"),
    orders: open("orders"),
  };
  return {
    ...upstreams,
    async [Symbol.asyncDispose]() {
      await Promise.all(Object.values(upstreams).map((upstream) => upstream?.[Symbol.asyncDispose]()));
    },
  };
}
