/** Text filters, applied by Enter or on leaving the field: the browser's `change`, which comes once for each edit. */
import { useTexts } from "../texts/index.ts";
import { useQueryParams } from "./use-query-params.ts";

interface FiltersProps {
  /** Names in the query, with their labels. */
  readonly fields: readonly (readonly [string, string])[];
}

export function Filters({ fields }: FiltersProps) {
  const t = useTexts();
  const [params, setParams] = useQueryParams();
  const isFiltered = fields.some(([name]) => params[name]);
  return (
    <search class="filters">
      {fields.map(([name, label]) => (
        <label key={name}>
          {label}
          <input
            type="text"
            name={name}
            autocomplete="off"
            spellcheck={false}
            maxLength={320}
            // A new value from the address, for instance after Back, replaces what is in the field.
            key={params[name] ?? ""}
            defaultValue={params[name] ?? ""}
            onChange={({ currentTarget }) => setParams({ [name]: currentTarget.value.trim() })}
          />
        </label>
      ))}
      {isFiltered && (
        <button
          type="button"
          class="quiet"
          onClick={() => setParams(Object.fromEntries(fields.map(([name]) => [name, undefined])))}
        >
          {t.clearFilters}
        </button>
      )}
    </search>
  );
}
