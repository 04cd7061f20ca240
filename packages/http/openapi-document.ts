/** Gives the parts of a generated document their names: tags, parameters, error responses and schemas. */
import { type Example, exampleOf } from "@todoke/contracts/api";
import type { ProblemKind } from "@todoke/kernel/problem";
import { type Components, problemName } from "./components.ts";
import { type HeaderName, headerTexts } from "./refusals.ts";
import { tags } from "./tags.ts";

interface Response {
  readonly description: string;
  readonly content?: Content;
  readonly headers?: object;
}

type Content = Readonly<Record<string, object>>;

interface Parameter {
  readonly name?: string;
  readonly in?: string;
  readonly schema: { readonly title?: string };
}

interface Operation {
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
  readonly "x-refusals"?: readonly ProblemKind[];
  readonly "x-response-headers"?: readonly HeaderName[];
}

export interface Document {
  readonly components?: object;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

export function nameParts(document: Document, components: Components) {
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  const paths = mapValues(document.paths, (item) => mapValues(item, (operation) => named(operation, components)));
  return {
    ...document,
    tags: usedTags(new Set(operations.flatMap((operation) => operation.tags ?? []))),
    paths,
    components: { ...document.components, ...components.all() },
  };
}

const mapValues = <From, To>(values: Readonly<Record<string, From>>, to: (value: From, key: string) => To) =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, to(value, key)]));

/** Tags that are not ours have no description. */
function usedTags(used: ReadonlySet<string>) {
  const ours = Object.entries(tags).filter(([name]) => used.has(name));
  const others = [...used].filter((name) => !(name in tags));
  return [...ours.map(([name, description]) => ({ name, description })), ...others.map((name) => ({ name }))];
}

function named(operation: Operation, components: Components) {
  const { "x-refusals": kinds = [], "x-response-headers": headers = [], ...described } = operation;
  const { operationId = "", parameters, requestBody, responses } = described;
  const example = exampleOf(operationId);
  const byStatus = Map.groupBy(kinds, ({ status }) => String(status));
  return components.refer({
    ...described,
    ...(parameters && {
      parameters: parameters.map((each) => components.parameter({ ...each, ...parameterExample(each, example) })),
    }),
    ...(requestBody && { requestBody: withExample(requestBody, example?.request.body) }),
    responses: mapValues(responses, (response, status) =>
      response.content && "application/problem+json" in response.content
        ? problemResponse(status, { kinds: byStatus.get(status) ?? [], components, response })
        : successResponse(status, {
            ...(status === String(example?.status) ? withExample(response, example?.response) : response),
            ...withHeaders(status, headers, response),
          }),
    ),
  });
}

/** A parameter that many operations have is a component, without an example of one of them. */
function parameterExample({ name = "", in: place, schema }: Parameter, example: Example | undefined) {
  const values = place === "path" || place === "query" ? example?.request[place] : undefined;
  const value = values?.[name];
  return value !== undefined && !schema.title && { example: value };
}

/** Every media type of the part has the example: a response has one. */
function withExample<Part extends { readonly content?: Content }>(part: Part, value: unknown): Part {
  if (value === undefined || !part.content) return part;
  return { ...part, content: mapValues(part.content, (media) => ({ ...media, example: value })) };
}

const withHeaders = (status: string, names: readonly HeaderName[], { headers }: Response) =>
  /^2/.test(status) &&
  names.length > 0 && {
    headers: { ...headers, ...Object.fromEntries(names.map((name) => [name, headerTexts[name]])) },
  };

function successResponse(status: string, response: Response): unknown {
  const description = response.description === generated ? successTexts[status] : undefined;
  return { ...response, ...(description && { description }) };
}

interface ProblemResponse {
  readonly kinds: readonly ProblemKind[];
  readonly components: Components;
  readonly response: Response;
}

/** A component for each status; an operation whose problems are known has a response of its own, with their names. */
function problemResponse(status: string, { kinds, components, response }: ProblemResponse): unknown {
  const { name, ...texts } = problemResponses[status] ?? anyProblem;
  if (kinds.length === 0) return components.response(name, { ...response, ...texts });
  const refs = kinds.map((kind) => components.problem(kind));
  const schema = refs.length === 1 ? refs[0] : { oneOf: refs, discriminator: discriminatorOf(kinds) };
  const listed = kinds.map(({ code, title }) => `- \`${code}\`: ${title}.`).join("\n");
  return {
    ...texts,
    description: `${texts.description}\n\n${listed}`,
    content: { "application/problem+json": { schema } },
  };
}

const discriminatorOf = (kinds: readonly ProblemKind[]) => ({
  propertyName: "code",
  mapping: Object.fromEntries(kinds.map(({ code }) => [code, `#/components/schemas/${problemName(code)}`])),
});

/** The placeholder of the generator for a schema without a description. */
const generated = "Default Response";

const successTexts: Readonly<Record<string, string>> = {
  200: "The request succeeded.",
  201: "The object was created.",
  202: "The request was accepted and is not completed yet.",
  204: "The request succeeded. The response has no body.",
};

const retryAfter = {
  headers: {
    "retry-after": { description: "After how many seconds to retry.", schema: { type: "integer", minimum: 1 } },
  },
};

interface NamedResponse {
  readonly name: string;
  readonly description: string;
  readonly headers?: object;
}

/** The error responses by status. */
const problemResponses: Readonly<Record<string, NamedResponse>> = {
  400: { name: "BadRequest", description: "The request does not match its schema." },
  401: { name: "Unauthenticated", description: "The credentials are missing or not valid." },
  403: { name: "Forbidden", description: "The caller may not do this." },
  404: { name: "NotFound", description: "The object does not exist, or the caller may not see it." },
  413: { name: "ContentTooLarge", description: "The body is too large." },
  415: { name: "UnsupportedMediaType", description: "The body is not JSON in UTF-8." },
  409: { name: "Conflict", description: "The request conflicts with the current state, or its key was used before." },
  412: { name: "PreconditionFailed", description: "The object has changed since it was read." },
  422: { name: "UnprocessableContent", description: "The request is well-formed but cannot be carried out." },
  428: { name: "PreconditionRequired", description: "The request needs the header If-Match." },
  429: { name: "TooManyRequests", description: "The caller has reached a limit.", ...retryAfter },
  502: { name: "BadGateway", description: "The response of another server cannot be used." },
  503: { name: "Unavailable", description: "The service cannot do this now.", ...retryAfter },
  504: { name: "GatewayTimeout", description: "Another server did not respond in time." },
};

const anyProblem: NamedResponse = { name: "Problem", description: "The request was rejected or failed." };
