/** Suggests the most similar name: "did you mean …?" */

/** With more edits than this it is another word. */
const distanceMax = 2;

export function closestMatch(word: string, candidates: readonly string[]): string | undefined {
  const [best] = candidates
    .map((candidate) => ({ candidate, distance: editDistance(word.slice(0, 64), candidate) }))
    .filter(({ candidate, distance }) => distance <= distanceMax && distance < candidate.length)
    .sort((a, b) => a.distance - b.distance);
  return best?.candidate;
}

/** Letters to insert, drop or replace to turn one word into the other (Levenshtein). */
function editDistance(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1];
    for (const [at, other] of [...to].entries()) {
      const replaced = (above[at] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(replaced, (above[at + 1] ?? 0) + 1, (current[at] ?? 0) + 1));
    }
    above = current;
  }
  return above[to.length] ?? 0;
}
