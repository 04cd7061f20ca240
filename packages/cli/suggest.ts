/** ` Did you mean "x"?` for a misspelt name; empty if no known name is similar. */
import { closestMatch } from "@todoke/http/closest-match";

export function suggest(name: string, known: readonly string[]): string {
  const match = closestMatch(name, known);
  return match ? ` Did you mean "${match}"?` : "";
}
