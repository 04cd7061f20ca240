/** The methods of the client, from the operations of all services: names, flags, parameters and results. */
import {
  type ApiDocument,
  type ApiDocuments,
  type ApiOperation,
  type Parameter,
  refName,
  type Schema,
} from "./openapi.ts";
import { schemaType } from "./schema-type.ts";

/** The part of the client that has a service's operations, and the noun that its methods need not repeat. */
const services: Readonly<Record<string, { readonly namespace: string; readonly noun: RegExp }>> = {
  account: { namespace: "account", noun: /$^/ },
  entitlement: { namespace: "entitlements", noun: /Entitlements?/ },
  matchmaking: { namespace: "matchmaking", noun: /$^/ },
  notification: { namespace: "inbox", noun: /(User)?Inbox/ },
  orders: { namespace: "orders", noun: /Orders?/ },
  points: { namespace: "points", noun: /Points/ },
  "gateway-bff": { namespace: "gateway", noun: /$^/ },
};

export const gateway = "gateway-bff";
export const namespaceOf = (service: string): string => describeService(service).namespace;

function describeService(service: string) {
  const found = services[service];
  if (!found) throw new Error(`the client has no part for the service ${service}: add it to flows/client/methods.ts`);
  return found;
}

export interface Method {
  readonly namespace: string;
  readonly name: string;
  readonly operationId: string;
  /** "POST /v1/points/additions body key": what the client needs at run time. */
  readonly line: string;
  readonly description: string;
  /** In the order of the path, then the query; not those of the body. */
  readonly parameters: readonly Parameter[];
  /** The type of the body. */
  readonly body: string | undefined;
  readonly isBodyOptional: boolean;
  readonly options: "FollowOptions" | "CommandOptions" | "ConditionalOptions" | "CallOptions";
  readonly result: string;
  /** The type of the items of a page or of a stream. */
  readonly item: string | undefined;
  readonly isStream: boolean;
}

interface Route {
  readonly service: string;
  readonly document: ApiDocument;
  readonly method: string;
  readonly path: string;
  readonly operation: ApiOperation;
}

/** A response that only says that the service's document describes it. */
const passedOn = "ServiceResponse";

export function methodsOf(
  documents: ApiDocuments,
): { readonly service: string; readonly methods: readonly Method[] }[] {
  const routes = Object.entries(documents).flatMap(([service, document]) => routesOf(service, document));
  return Object.keys(documents).map((service) => {
    const own = routes.filter(
      (route) => route.service === service && isForPrograms(route) && !isOldPath(route, routes),
    );
    const methods = own.map((route) => toMethod(route, describedBy(route, routes)));
    rejectDuplicates(service, methods);
    return {
      service,
      methods: methods.toSorted((a, b) => (`${a.namespace} ${a.name}` < `${b.namespace} ${b.name}` ? -1 : 1)),
    };
  });
}

const routesOf = (service: string, document: ApiDocument): Route[] =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      service,
      document,
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );

/** How a document says that only the gateway may call an operation (describeRule of packages/http). */
const forGateway = /Allowed for gateway-bff\.$/;

/** Redirects, pages and forms are for browsers and identity providers. Staff calls the gateway. */
function isForPrograms({ service, path, operation }: Route): boolean {
  if (service !== gateway && path.startsWith("/v1/admin/")) return false;
  if (forGateway.test(operation.description ?? "")) return false;
  const types = successes(operation).flatMap(({ content = {} }) => Object.keys(content));
  const sends = Object.keys(operation.requestBody?.content ?? { "application/json": {} });
  const hasSuccess = Object.keys(operation.responses).some((status) => status.startsWith("2"));
  return hasSuccess && !types.includes("text/html") && sends.includes("application/json");
}

/** `PUT /point/add` and `POST /v1/points/additions` are the same: the client has the one under /v1. */
const isOldPath = ({ service, operation }: Route, routes: readonly Route[]): boolean =>
  routes.some((other) => other.service === service && other.operation.operationId === `${operation.operationId}V1`);

interface Described {
  /** The service that has this operation; the gateway offers many operations of services. */
  readonly owner: string;
  /** The route that describes the response. */
  readonly source: Route;
}

function describedBy(route: Route, routes: readonly Route[]): Described {
  const { operationId } = route.operation;
  // The inbox of the player who calls is, at its service, that of a user.
  const names = [operationId, operationId.replace("Inbox", "UserInbox")];
  const others = routes.filter(
    (other) => other.service !== gateway && names.includes(other.operation.operationId ?? ""),
  );
  const [found, ...more] = route.service === gateway ? others : [];
  const isPassedOn = successes(route.operation).some(({ content }) => refName(jsonOf(content)?.$ref) === passedOn);
  if (isPassedOn && !found) throw new Error(`no service describes ${operationId}, which the gateway passes on`);
  // What every service has for staff is an operation of the gateway.
  const owner = more.length > 0 ? route.service : (found ?? route).service;
  return { owner, source: isPassedOn && found ? found : route };
}

const successes = ({ responses }: ApiOperation) =>
  Object.entries(responses)
    .filter(([status]) => status.startsWith("2"))
    .map(([, response]) => response);
const jsonOf = (content: ApiOperation["responses"][string]["content"] = {}): Schema | undefined =>
  content["application/json"]?.schema;

function toMethod(route: Route, { owner, source }: Described): Method {
  const { document, method, path, operation } = route;
  const { operationId, requestBody, description = "" } = operation;
  const { namespace, noun } = describeService(owner);
  const all = (operation.parameters ?? []).map((each) => resolve(each, document));
  const headers = all.filter((each) => each.in === "header").map(({ name }) => name.toLowerCase());
  const body = requestBody?.content["application/json"]?.schema;
  const types = successes(source.operation).flatMap(({ content = {} }) => Object.keys(content));
  const isStream = types.includes("text/event-stream");
  const schema = resolveSchema(body, document);
  const page = pageOf(source);
  const hasKey = headers.includes("idempotency-key");
  const hasKeyInBody = hasKey && schema?.properties?.idempotency_key !== undefined;
  const parameters = all.filter(
    ({ in: place, name }) => place === "path" || (place === "query" && !(isStream && name === "last_event_id")),
  );
  rejectClashes(operationId, parameters, schema);
  rejectNumbersOnly(operationId, body, document);
  const flags = [
    body && "body",
    hasKey && "key",
    hasKeyInBody && "body-key",
    hasItemKeys(schema, document) && "item-keys",
    types.includes("text/csv") && "text",
    isStream && "stream",
    page && `items=${page.property}`,
    !body && parameters.length === 0 && "no-params",
  ].filter(Boolean);
  const bodyType = body && schemaType(body);
  return {
    namespace,
    name: lowerFirst(operationId.replace(/V1$/, "").replace(noun, "")),
    operationId,
    line: [method, path, ...flags].join(" "),
    description,
    parameters,
    body: hasKeyInBody ? `Omit<${bodyType}, "idempotency_key">` : bodyType,
    isBodyOptional: (schema?.required ?? []).length === 0,
    options: isStream
      ? "FollowOptions"
      : hasKey
        ? "CommandOptions"
        : headers.includes("if-match")
          ? "ConditionalOptions"
          : "CallOptions",
    result: resultOf(source.operation),
    item: isStream ? streamItem(route) : page?.item,
    isStream,
  };
}

const resolve = (parameter: Parameter, { components }: ApiDocument): Parameter =>
  parameter.$ref === undefined ? parameter : (components.parameters?.[refName(parameter.$ref)] ?? parameter);

function resolveSchema(schema: Schema | undefined, { components }: ApiDocument): Schema | undefined {
  return schema?.$ref === undefined ? schema : components.schemas?.[refName(schema.$ref)];
}

function resultOf(operation: ApiOperation): string {
  const results = Object.entries(operation.responses)
    .filter(([status]) => status.startsWith("2"))
    .map(([, { content = {} }]) => {
      const json = jsonOf(content);
      if (json) return schemaType(json);
      return Object.keys(content).length > 0 ? "string" : "undefined";
    });
  return [...new Set(results)].join(" | ");
}

/** A page has a cursor and one list. Of several lists, such as those of an export, the caller follows the cursor. */
function pageOf({ operation, document }: Route): { readonly property: string; readonly item: string } | undefined {
  const [response] = successes(operation);
  const page = resolveSchema(jsonOf(response?.content), document)?.properties;
  if (!page?.next_cursor) return undefined;
  const lists = Object.entries(page).filter(([, { type }]) => type === "array");
  const [[property, list] = ["", {} as Schema], ...more] = lists;
  if (lists.length === 0 || more.length > 0) return undefined;
  return { property, item: schemaType(list.items ?? {}) };
}

/** A stream has the items of the list of the same name: followInbox those of listInbox. */
function streamItem({ document, operation, service }: Route): string {
  const listId = operation.operationId.replace("follow", "list");
  const list = routesOf(service, document).find((route) => route.operation.operationId === listId);
  const item = list && pageOf(list)?.item;
  if (!item) throw new Error(`the stream ${operation.operationId} has no list ${listId} with the same items`);
  return item;
}

/** Each command of a batch has its own key, so that the batch can be sent again. */
function hasItemKeys(schema: Schema | undefined, document: ApiDocument): boolean {
  return Object.values(schema?.properties ?? {}).some(({ items }) => {
    const item = resolveSchema(items, document);
    const choices = item?.anyOf?.map((each) => resolveSchema(each, document)) ?? [item];
    return choices.every((each) => each?.required?.includes("idempotency_key"));
  });
}

/** A method takes the parameters and the fields of the body as one object. */
function rejectClashes(operationId: string, parameters: readonly Parameter[], body: Schema | undefined): void {
  const names = Object.keys(body?.properties ?? {});
  const clash = parameters.find(({ name, in: place }) => names.includes(name) || (body && place === "query"));
  if (clash)
    throw new Error(`${operationId} has ${clash.name} beside its body: the client cannot tell where it belongs`);
}

/** The client sends an int64 as digits in a string. */
function rejectNumbersOnly(operationId: string, schema: Schema | undefined, document: ApiDocument): void {
  const own = resolveSchema(schema, document);
  if (own?.format === "int64" && ![own.type].flat().includes("string"))
    throw new Error(`${operationId} does not accept an int64 as a string of digits`);
  const parts = [...Object.values(own?.properties ?? {}), ...(own?.anyOf ?? []), ...(own?.items ? [own.items] : [])];
  for (const part of parts) rejectNumbersOnly(operationId, part, document);
}

function rejectDuplicates(service: string, methods: readonly Method[]): void {
  const names = methods.map(({ namespace, name }) => `${namespace}.${name}`);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new Error(`two operations of ${service} are ${twice} in the client`);
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
