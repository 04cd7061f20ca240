/** Variables that Kubernetes adds to every process. */
import type { Env } from "./services.ts";

/**
 * Kubernetes describes every service of a namespace in the environment of every pod: POINTS_SERVICE_HOST=10.0.0.1,
 * POINTS_PORT=tcp://10.0.0.1:8085. The latter has the name of our setting, so these variables are removed.
 */
export const withoutServiceLinks = (env: Env): Env =>
  Object.fromEntries(Object.entries(env).filter(([name, value]) => !isServiceLink(name, value)));

const linkName = /_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/;

const isServiceLink = (name: string, value = ""): boolean =>
  linkName.test(name) || (name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(value));
