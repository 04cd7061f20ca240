/** The search index of a language: every section of every page. The page loads it at the first search. */

import type { Page } from "./pages.ts";
import type { Rendered } from "./render.ts";
import { searchTerms } from "./search-terms.ts";
import { createSearchIndex } from "./tools.ts";

/** The same in assets/site.js. */
const searchOptions = {
  fields: ["heading", "title", "text"],
  storeFields: ["title", "heading", "path", "start"],
};

export type SearchSource = Pick<Page, "path" | "title"> & { readonly sections: Rendered["sections"] };

export function searchIndex(pages: readonly SearchSource[]): string {
  const index = createSearchIndex({ ...searchOptions, tokenize: searchTerms, processTerm: (term: string) => term });
  const documents = pages.flatMap(({ path, title, sections }) =>
    sections.map(({ anchor, heading, text }) => {
      const words = text.trim().replace(/\s+/g, " ");
      const at = anchor === "" ? path : `${path}#${anchor}`;
      return { id: at, path: at, title, heading, text: words, start: words.slice(0, 140) };
    }),
  );
  index.addAll([...new Map(documents.map((each) => [each.id, each])).values()]);
  return JSON.stringify(index);
}

/** The function as a script for the page. */
export const searchTermsScript = (): string => `${searchTerms}\n`;
