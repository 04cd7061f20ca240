/** Schemas for kubeconform, a file per kind, from what Kubernetes and the Prometheus Operator publish. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly "x-kubernetes-group-version-kind"?: readonly { group: string; version: string; kind: string }[];
}

interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** `deployment-apps-v1.json`, the name that kubeconform asks for. */
const fileName = ({ group, version, kind }: Kind): string =>
  `${[kind.toLowerCase(), ...(group ? [group.split(".")[0]] : []), version].join("-")}.json`;

/** Unknown fields are errors, and a number may be where Kubernetes takes both. */
function toStrict(_key: string, value: unknown): unknown {
  const schema = value as Schema | null;
  if (typeof schema !== "object" || schema === null) return value;
  if (schema.format === "int-or-string") return { type: ["integer", "string"] };
  return schema.properties && schema.type === "object" ? { additionalProperties: false, ...schema } : schema;
}

export function writeSchemas(swagger: string, folder: string): void {
  const { definitions }: { definitions: Record<string, Schema> } = JSON.parse(readFileSync(swagger, "utf8"), toStrict);
  writeFileSync(join(folder, "_definitions.json"), JSON.stringify({ definitions }));
  for (const [name, schema] of Object.entries(definitions))
    for (const kind of schema["x-kubernetes-group-version-kind"] ?? [])
      writeFileSync(join(folder, fileName(kind)), JSON.stringify({ $ref: `_definitions.json#/definitions/${name}` }));
}

export function writeCrdSchema(crd: string, folder: string): void {
  const { spec } = parse(readFileSync(crd, "utf8"));
  for (const { name: version, schema } of spec.versions) {
    const { properties, ...rest } = schema.openAPIV3Schema;
    const own = { ...rest, properties: { ...properties, metadata: {} } };
    const kind = { group: spec.group, version, kind: spec.names.kind };
    writeFileSync(join(folder, fileName(kind)), JSON.stringify(JSON.parse(JSON.stringify(own), toStrict)));
  }
}
