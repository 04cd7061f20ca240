/** JSON without rounding: an integer past 2^53 is read as a bigint, and written with the same digits. */

interface Source {
  readonly source?: string;
}

export function parseJson(text: string): unknown {
  return JSON.parse(text, (_name, value, { source }: Source = {}) => {
    const isRounded = typeof value === "number" && source !== undefined && !Number.isSafeInteger(value);
    return isRounded && /^-?\d{1,400}$/.test(source) ? BigInt(source) : value;
  });
}

export function formatJson(value: unknown): string {
  const written = (_name: string, each: unknown) => (typeof each === "bigint" ? rawJson(String(each)) : each);
  return JSON.stringify(value, written, 2) ?? "";
}

// TypeScript does not know it yet.
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
