/** The path of a field as a programmer writes it: body.items[2].price. */
import { quoted } from "./printable.ts";

export type Path = (string | number)[];

const plainKey = /^[A-Za-z_$][\w$-]{0,63}$/;

export function readablePath(root: string, path: Readonly<Path>): string {
  return root + path.map(step).join("");
}

function step(key: string | number): string {
  if (typeof key === "number") return `[${key}]`;
  return plainKey.test(key) ? `.${key}` : `[${quoted(key)}]`;
}
