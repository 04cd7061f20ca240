/** Sends an act of staff to a service. */
import type { Call, Upstream } from "../upstreams/client.ts";

export interface StaffCaller extends Pick<Call, "requestId"> {
  readonly user: NonNullable<Call["user"]>;
}

interface Post extends StaffCaller {
  readonly path: string;
  readonly key: string;
  readonly body: object;
}

export const postTo =
  ({ key, body, ...call }: Post) =>
  async (upstream: Upstream): Promise<unknown> =>
    (await upstream.call({ ...call, method: "POST", idempotencyKey: key, body: JSON.stringify(body) })).value;
