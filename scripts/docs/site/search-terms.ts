/**
 * How texts become search terms, for the index and for the search in the page, which gets this function as text. Japanese has no
 * spaces: each pair of neighbouring characters is a term.
 */
export function searchTerms(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{Script=Latin}\p{N}_]+/gu) ?? [];
  const runs = text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]+/gu) ?? [];
  const pairs = runs.flatMap((run) =>
    run.length === 1 ? [run] : Array.from({ length: run.length - 1 }, (_, index) => run.slice(index, index + 2)),
  );
  return [...words, ...words.flatMap((word) => (word.includes("_") ? word.split("_") : [])), ...pairs];
}
