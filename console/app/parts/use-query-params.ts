/** Filters live in the address, so that Back, a reload and a shared link all show the same rows. */
import { useLocation, useSearch } from "wouter-preact";
import { withQuery } from "../api/request.ts";

type Params = Readonly<Record<string, string>>;

export function useQueryParams(): [Params, (changed: Readonly<Record<string, string | undefined>>) => void] {
  const search = useSearch();
  const [pathname, navigate] = useLocation();
  const params = Object.fromEntries(new URLSearchParams(search));
  return [
    params,
    (changed) => {
      // A new filter begins at the first page.
      navigate(withQuery(pathname, { ...params, cursor: undefined, ...changed }));
    },
  ];
}
