/**
 * Finds errors in the API documents of the services, a sentence each: as documents of OpenAPI 3.1, and as what a client
 * is generated from. Nothing here asks a service.
 */
import { isDeepStrictEqual } from "node:util";

type Json = Record<string, unknown>;

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Json[];
  readonly security?: readonly Json[];
  readonly requestBody?: { readonly content: Content };
  readonly "x-codeSamples"?: readonly { readonly label: string; readonly source: string }[];
  readonly responses?: Readonly<Record<string, { readonly description?: string; readonly content?: Content } & Json>>;
}

type Content = Readonly<Record<string, { readonly schema?: Json }>>;

/** One named component, or a choice of several. */
function isNamed({ $ref, oneOf }: Json = {}, kind = "schemas"): boolean {
  const refs = Array.isArray(oneOf) ? oneOf.map((each: Json) => each.$ref) : [$ref];
  return refs.length > 0 && refs.every((ref) => String(ref).startsWith(`#/components/${kind}/`));
}

export interface ApiDocument {
  readonly openapi: string;
  readonly info: { readonly title?: string; readonly version?: string };
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, Json>>>>;
}

/** By the name of the service. */
export function apiFaults(documents: Readonly<Record<string, ApiDocument>>): string[] {
  const all = Object.entries(documents);
  return [
    ...all.flatMap(([service, document]) => documentFaults(document).map((fault) => `${service}: ${fault}`)),
    ...differentComponents(all),
    ...mixedIntegers(all),
  ];
}

function documentFaults(document: ApiDocument): string[] {
  const { openapi, info, tags = [], paths, components } = document;
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
  const ids = operations.map(({ operation }) => operation.operationId ?? "");
  const refs = new Set(refsIn(document));
  const names = Object.entries(components)
    .filter(([kind]) => kind !== "securitySchemes")
    .flatMap(([kind, named]) => Object.keys(named).map((name) => `#/components/${kind}/${name}`));
  return [
    ...(/^3\.1\.\d$/.test(openapi) && info.title && info.version ? [] : ["it is not OpenAPI 3.1 with an info object"]),
    ...repeated(ids).map((id) => `two operations have the operationId ${id}`),
    ...operations.flatMap(({ path, method, operation }) =>
      [...operationFaults(operation, document), ...parameterFaults(path, operation, document)].map(
        (fault) => `${method.toUpperCase()} ${path} ${fault}`,
      ),
    ),
    ...tags.filter(({ description }) => !isSentence(description)).map(({ name }) => `the tag ${name} is not described`),
    ...tags
      .filter(({ name }) => !operations.some(({ operation }) => operation.tags?.includes(name)))
      .map(({ name }) => `no operation has the tag ${name}`),
    ...[...refs].filter((ref) => !names.includes(ref)).map((ref) => `${ref} names nothing`),
    ...names.filter((name) => !refs.has(name)).map((name) => `${name} is not used`),
    ...names.filter((name) => !/^#\/components\/\w+\/[A-Z]\w*$/.test(name)).map((name) => `${name} is no good name`),
  ];
}

const repeated = (names: readonly string[]) => names.filter((name, index) => names.indexOf(name) !== index);
const isSentence = (text = "") => /^[A-Z].*\.$/s.test(text);
const isTitle = (text = "") => /^[A-Z][^.:;]*[^.:;]$/.test(text) && text.length <= 40;

function operationFaults(operation: Operation, { tags = [], components }: ApiDocument): string[] {
  const { summary, description, tags: own = [], requestBody, responses = {}, security = [] } = operation;
  const bodies = [requestBody, ...Object.values(responses)].flatMap((part) => Object.entries(part?.content ?? {}));
  const errors = Object.entries(responses).filter(([status]) => !/^[23]/.test(status));
  const schemes = security.flatMap((each) => Object.keys(each));
  return [
    ...(own.length === 1 && tags.some(({ name }) => name === own[0]) ? [] : ["does not have one tag of the document"]),
    ...(isTitle(summary) ? [] : [`has no short title as its summary: ${summary}`]),
    ...(isSentence(description) ? [] : [`is not described in sentences: ${description}`]),
    ...bodies
      .filter(([, { schema }]) => !isNamed(schema))
      .map(([type]) => `has a body of ${type} that is no named component`),
    ...errors
      .filter(([, { $ref, content = {} }]) => !isNamed({ $ref }, "responses") && Object.keys(content).length === 0)
      .map(([status]) => `has an error response that is no named component: ${status}`),
    ...(Object.keys(responses).some((status) => /^[23]/.test(status)) ? [] : ["does not describe its success"]),
    ...Object.entries(responses)
      .filter(([, { $ref, description: text }]) => $ref === undefined && !isSentence(text))
      .map(([status]) => `does not describe its response ${status}`),
    ...schemes
      .filter((name) => !components.securitySchemes?.[name])
      .map((name) => `uses a security scheme that the document does not have: ${name}`),
  ];
}

function parameterFaults(path: string, { parameters = [] }: Operation, { components }: ApiDocument): string[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const all = parameters.map(({ $ref, ...own }) =>
    typeof $ref === "string" ? (components.parameters?.[$ref.split("/").at(-1) ?? ""] ?? {}) : own,
  );
  const declared = all.filter((parameter) => parameter.in === "path");
  return [
    ...all
      .filter((each) => !each.name || !["path", "query", "header", "cookie"].includes(String(each.in)) || !each.schema)
      .map(({ name }) => `has a parameter without a name, a place or a schema: ${name}`),
    ...(isDeepStrictEqual(inPath.toSorted(), declared.map(({ name }) => String(name)).toSorted())
      ? []
      : ["does not declare the parameters of its path"]),
    ...declared.filter(({ required }) => required !== true).map(({ name }) => `does not require ${name}`),
  ];
}

function refsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) =>
    key === "$ref" && typeof each === "string" ? [each] : refsIn(each),
  );
}

type Documents = readonly (readonly [service: string, document: ApiDocument])[];

/** One name is one thing, in every service. */
function differentComponents(documents: Documents): string[] {
  const known = new Map<string, { readonly service: string; readonly component: Json }>();
  return documents.flatMap(([service, { components }]) =>
    Object.entries(components).flatMap(([kind, named]) =>
      Object.entries(named).flatMap(([name, component]) => {
        const first = known.get(`${kind} ${name}`);
        if (!first) known.set(`${kind} ${name}`, { service, component });
        const isSame = !first || isDeepStrictEqual(first.component, component);
        return isSame ? [] : [`${name} of ${service} differs from that of ${first.service} (${kind})`];
      }),
    ),
  );
}

/** A client reads a property as a bigint by its name: it is int64 everywhere, or nowhere. */
function mixedIntegers(documents: Documents): string[] {
  const formats = new Map<string, Set<string>>();
  for (const [, { components }] of documents)
    for (const schema of Object.values(components.schemas ?? {}))
      for (const [name, property] of propertiesIn(schema)) {
        const named = components.schemas?.[String(property.$ref).split("/").at(-1) ?? ""];
        const { type, format = "none" } = named ?? property;
        if ([type].flat().includes("integer")) formats.set(name, (formats.get(name) ?? new Set()).add(String(format)));
      }
  return [...formats]
    .filter(([, found]) => found.size > 1)
    .map(([name]) => `${name} is an int64 in one place and another integer elsewhere`);
}

function propertiesIn(value: unknown): (readonly [name: string, property: Json])[] {
  if (typeof value !== "object" || value === null) return [];
  const { properties } = value as { properties?: Readonly<Record<string, Json>> };
  return [...Object.entries(properties ?? {}), ...Object.values(value).flatMap(propertiesIn)];
}
