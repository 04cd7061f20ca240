/** An OpenAPI document with what each `$ref` names in its place, for tests that read schemas. */
export function inlineRefs<Document>(document: Document): Document {
  const inline = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inline);
    if (typeof value !== "object" || value === null) return value;
    const { $ref, ...rest } = value as Record<string, unknown>;
    const named = typeof $ref === "string" ? (inline(targetOf(document, $ref)) as object) : {};
    return { ...named, ...Object.fromEntries(Object.entries(rest).map(([key, each]) => [key, inline(each)])) };
  };
  return inline(document) as Document;
}

/** What `#/components/schemas/Order` names. */
function targetOf(document: unknown, ref: string): unknown {
  const found = ref
    .split("/")
    .slice(1)
    .reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], document);
  if (found === undefined) throw new Error(`${ref} names nothing`);
  return found;
}
