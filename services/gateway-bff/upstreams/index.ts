/** The services behind the gateway. Those whose address is not set are not deployed here. */
import type { Signer } from "@todoke/http";
import { openUpstream, type Upstream } from "./client.ts";
import type { UpstreamName } from "./verdict.ts";

export type { Call, Upstream } from "./client.ts";
export type { Answer, UpstreamName } from "./verdict.ts";

export type Upstreams = Readonly<Record<UpstreamName, Upstream | undefined>> & { readonly account: Upstream };

/** Where each service is. */
export type UpstreamUrls = Readonly<Record<UpstreamName, URL | undefined>> & { readonly account: URL };

export interface UpstreamsOptions {
  readonly urls: UpstreamUrls;
  readonly tokenFor: Signer["tokenFor"];
  readonly timeoutMs?: number;
  readonly underWayMax?: number;
  readonly waitingMax?: number;
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
  };
  return {
    ...upstreams,
    async [Symbol.asyncDispose]() {
      await Promise.all(Object.values(upstreams).map((upstream) => upstream?.[Symbol.asyncDispose]()));
    },
  };
}
