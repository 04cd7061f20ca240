/** Pages by cursor: no total, no jump. The browser's Back leads to the page before. */
import { useTexts } from "../texts/index.ts";
import { useQueryParams } from "./use-query-params.ts";

export function Paging({ next }: { readonly next: string | undefined }) {
  const t = useTexts();
  const [{ cursor }, setParams] = useQueryParams();
  if (!next && !cursor) return null;
  return (
    <nav class="paging" aria-label={t.pages}>
      <button type="button" disabled={!cursor} onClick={() => setParams({ cursor: undefined })}>
        {t.firstPage}
      </button>
      <button type="button" disabled={!next} onClick={() => setParams({ cursor: next })}>
        {t.nextPage}
      </button>
    </nav>
  );
}
