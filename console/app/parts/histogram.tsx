/** A histogram, with a table that says the same. */
import { useEffect, useRef } from "preact/hooks";
import { useStore } from "../api/store.ts";
import { useTexts } from "../texts/index.ts";
import type { Chart } from "./chart.ts";
import { preferences } from "./preferences.ts";
import { Table } from "./table.tsx";

export interface HistogramBar {
  readonly from: number;
  readonly to: number | null;
  readonly count: number;
}

interface HistogramProps {
  readonly label: string;
  readonly bars: readonly HistogramBar[];
  /** The head of the column with the counts. */
  readonly counted: string;
}

export function Histogram({ label, bars, counted }: HistogramProps) {
  const t = useTexts();
  const area = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart>();
  const { theme } = useStore(preferences);

  useEffect(() => {
    let isGone = false;
    void import("./chart.ts").then(({ drawBars }) => {
      if (isGone || !area.current) return;
      const labels = bars.map(({ from, to, count }) => ({ label: to === null ? `${from}+` : String(from), count }));
      chart.current = drawBars(area.current, labels);
    });
    return () => {
      isGone = true;
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [bars]);

  // The colours of a canvas do not follow the theme by themselves.
  useEffect(() => {
    const redraw = () => chart.current?.redraw();
    redraw();
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", redraw);
    return () => system.removeEventListener("change", redraw);
  }, [theme]);

  const range = ({ from, to }: HistogramBar) => {
    const [low, high] = [from, to].map((value) => value?.toLocaleString(t.locale));
    return to === null ? t.andMore(low ?? "") : `${low} – ${high}`;
  };
  return (
    <figure class="chart">
      <figcaption>{label}</figcaption>
      <div ref={area} class="chart-area" aria-hidden="true" />
      <details>
        <summary>{t.asTable}</summary>
        <Table
          label={label}
          rows={bars}
          keyOf={({ from }) => String(from)}
          columns={[
            { head: label, cell: range },
            { head: counted, align: "end", cell: ({ count }) => count.toLocaleString(t.locale) },
          ]}
        />
      </details>
    </figure>
  );
}
