/** Keeps some fields of a JSON object, and every number as it is written. */

declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}

const keepDigits = (_: string, value: unknown, { source }: { readonly source?: string } = {}) =>
  typeof value === "number" && source !== undefined ? JSON.rawJSON(source) : value;

export function pickFields(body: string, fields: ReadonlySet<string>): string {
  const value: unknown = JSON.parse(body, keepDigits);
  if (typeof value !== "object" || value === null) return body;
  return JSON.stringify(Object.fromEntries(Object.entries(value).filter(([name]) => fields.has(name))));
}
