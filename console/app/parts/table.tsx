/** A table that becomes cards on a phone, with rows that can be selected and walked with J and K. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { useTexts } from "../texts/index.ts";
import { useShortcuts } from "./keys.ts";

interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => ComponentChildren;
  readonly align?: "end";
}

export interface Selection {
  readonly chosen: ReadonlySet<string>;
  readonly choose: (keys: readonly string[], on: boolean) => void;
}

export function useSelection(): Selection & { readonly clear: () => void } {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  return {
    chosen,
    choose: (keys, on) =>
      setChosen((before) =>
        on ? new Set([...before, ...keys]) : new Set([...before].filter((key) => !keys.includes(key))),
      ),
    clear: () => setChosen(new Set()),
  };
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly selection?: Selection | undefined;
}

export function Table<T>({ label, columns, rows, keyOf, selection }: TableProps<T>) {
  const t = useTexts();
  const body = useRef<HTMLTableSectionElement>(null);
  const last = useRef(0);
  const keys = rows.map(keyOf);

  /** The table with the focus has the keys; without one, the first table of the page. */
  const hasKeys = () => (document.activeElement?.closest("tbody") ?? document.querySelector("tbody")) === body.current;
  const focused = () => [...(body.current?.rows ?? [])].indexOf(document.activeElement as HTMLTableRowElement);
  const move = (step: number) => {
    if (!hasKeys()) return false;
    const index = Math.min(Math.max(focused() + step, 0), rows.length - 1);
    body.current?.rows[index]?.focus();
  };
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    Enter() {
      if (focused() < 0) return false;
      body.current?.rows[focused()]?.querySelector("a")?.click();
    },
    x() {
      const key = keys[focused()];
      if (!selection || key === undefined) return false;
      selection.choose([key], !selection.chosen.has(key));
    },
  });

  /** With Shift, everything since the last one. */
  function pick(index: number, on: boolean, isRange: boolean): void {
    const [from, to] = isRange ? [Math.min(last.current, index), Math.max(last.current, index)] : [index, index];
    last.current = index;
    selection?.choose(keys.slice(from, to + 1), on);
  }
  const isAll = keys.length > 0 && keys.every((key) => selection?.chosen.has(key));

  return (
    <div class="table-frame">
      <table aria-label={label}>
        <thead>
          <tr>
            {selection && (
              <th class="pick">
                <input
                  type="checkbox"
                  aria-label={t.selectPage}
                  checked={isAll}
                  onChange={({ currentTarget }) => selection.choose(keys, currentTarget.checked)}
                />
              </th>
            )}
            {columns.map(({ head, align }) => (
              <th key={head} class={align}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row, index) => (
            <tr key={keys[index]} tabIndex={-1} class={selection?.chosen.has(keys[index] ?? "") ? "chosen" : ""}>
              {selection && (
                <td class="pick">
                  <input
                    type="checkbox"
                    aria-label={t.selectRow(keys[index] ?? "")}
                    checked={selection.chosen.has(keys[index] ?? "")}
                    onClick={(event) => pick(index, event.currentTarget.checked, event.shiftKey)}
                  />
                </td>
              )}
              {columns.map(({ head, cell, align }) => (
                <td key={head} class={align} data-label={head}>
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
