/** Creates the methods of a client from the table of operations. */
import { Call, PagedCall } from "./call.ts";
import { execute } from "./execute.ts";
import { type FollowOptions, follow } from "./follow.ts";
import { gatewayOperations, namespaces, serviceOperations } from "./gen/operations.ts";
import type { GatewayApi, ServiceApis } from "./gen/schemas.ts";
import { type Join, joinWith } from "./matchmaking.ts";
import { type Operation, type Params, parseOperation } from "./operation.ts";
import type { CommandOptions, Context, SharedOptions } from "./options.ts";

export interface GatewayOptions extends SharedOptions {
  /** The address of the gateway. In a browser, `location.origin`: the session cookie works on the gateway's own pages. */
  readonly gateway: string;
  /** The session of a program, from `logIn`. Without it the session is that of the browser's cookie. */
  readonly session?: string | { readonly session_token: string };
}

export type ServiceName = keyof ServiceApis;

export interface ServicesOptions<Urls extends Partial<Record<ServiceName, string>>> extends SharedOptions {
  /** The addresses of the services that are called. */
  readonly services: Urls;
  /** `tdk_…`, from `todoke keys create`. */
  readonly apiKey: string;
}

/** For players: everything at one address. */
export type PlayerClient = Omit<GatewayApi, "matchmaking"> & {
  readonly matchmaking: GatewayApi["matchmaking"] & { readonly join: Join };
};

type Namespaces<Urls> = { [Name in keyof Urls & ServiceName]: ServiceApis[Name] }[keyof Urls & ServiceName];
type Intersection<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;

/** For back-ends: the services whose addresses were given. */
export type ServicesClient<Urls> = Intersection<Namespaces<Urls>>;

export function createClient(options: GatewayOptions): PlayerClient;
export function createClient<const Urls extends Partial<Record<ServiceName, string>>>(
  options: ServicesOptions<Urls>,
): ServicesClient<Urls>;
export function createClient(options: GatewayOptions | ServicesOptions<Partial<Record<ServiceName, string>>>): unknown {
  if ("gateway" in options) return playerClient(options);
  const { services, apiKey } = options;
  const headers = { authorization: `Bearer ${apiKey}` };
  const apis = Object.entries(services).map(([service, url]) => {
    const name = namespaces[service as ServiceName];
    return [
      name,
      methods(serviceOperations[service as ServiceName], { name, context: toContext(url, headers, options) }),
    ];
  });
  return Object.fromEntries(apis);
}

function playerClient(options: GatewayOptions): PlayerClient {
  const { gateway, session } = options;
  const token = typeof session === "object" ? session.session_token : session;
  // The header keeps other sites from using the cookie: a form of theirs cannot send it.
  const headers: Record<string, string> =
    token === undefined ? { "x-todoke-request": "1" } : { authorization: `Bearer ${token}` };
  const context = toContext(gateway, headers, options);
  const api = Object.fromEntries(
    Object.entries(gatewayOperations).map(([name, lines]) => [name, methods(lines, { name, context })]),
  ) as unknown as GatewayApi;
  return { ...api, matchmaking: { ...api.matchmaking, join: joinWith(api.matchmaking) } };
}

function toContext(url: string, headers: Readonly<Record<string, string>>, options: SharedOptions): Context {
  const { fetch = globalThis.fetch, deadlineMs = 30_000, tryMs = 10_000, retryBaseMs = 200, language } = options;
  return {
    baseUrl: url.replace(/\/+$/, ""),
    headers: { ...headers, ...(language !== undefined && { "accept-language": language }) },
    fetch: (request) => fetch(request), // A browser's fetch must be called without another `this`.
    deadlineMs,
    tryMs,
    retryBaseMs,
  };
}

interface Namespace {
  readonly name: string;
  readonly context: Context;
}

const methods = (lines: Readonly<Record<string, string>>, { name, context }: Namespace) =>
  Object.fromEntries(
    Object.entries(lines).map(([method, line]) => [
      method,
      toMethod(parseOperation(`${name}.${method}`, line), context),
    ]),
  );

function toMethod(operation: Operation, context: Context) {
  const call = operation.isStream
    ? (params: Params, options?: FollowOptions) => follow(operation, context, params, options)
    : (params: Params, options?: CommandOptions) => toCall(operation, context, { params, options });
  return operation.hasParams
    ? (params: Params = {}, options?: object) => call(params, options)
    : (options?: object) => call({}, options);
}

interface Arguments {
  readonly params: Params;
  readonly options: CommandOptions | undefined;
}

function toCall(operation: Operation, context: Context, { params, options }: Arguments) {
  const { items } = operation;
  const first = execute<Readonly<Record<string, unknown>>>(operation, context, params, options);
  if (items === undefined) return new Call(first);
  const readPage = (cursor: string) => new Call(execute<never>(operation, context, { ...params, cursor }, options));
  return new PagedCall(first, readPage, (page) => page[items] as readonly unknown[]);
}

/** The address at which a browser logs in. Then it returns to `returnTo`, a path of the same site. */
export const logInUrl = ({
  gateway,
  returnTo = "/",
}: {
  readonly gateway: string;
  readonly returnTo?: string;
}): string => `${gateway.replace(/\/+$/, "")}/login?${new URLSearchParams({ returnTo })}`;
