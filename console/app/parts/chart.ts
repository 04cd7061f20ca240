/** The chart library, in a chunk of its own: only pages with charts load it. */
import "uplot/dist/uPlot.min.css";
import UPlot from "uplot";

export interface Chart {
  redraw(): void;
  destroy(): void;
}

/** Bars of equal width. Colours are those of the element: text, lines (border) and bars (outline). */
export function drawBars(
  element: HTMLElement,
  bars: readonly { readonly label: string; readonly count: number }[],
): Chart {
  const size = () => ({ width: Math.max(element.clientWidth, 120), height: 220 });
  const colour = (of: "color" | "borderTopColor" | "outlineColor") => () => getComputedStyle(element)[of];
  const axis = { stroke: colour("color"), font: "12px system-ui", ticks: { show: false } };
  const chart = new UPlot(
    {
      ...size(),
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, range: [-0.6, bars.length - 0.4] } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          splits: () => bars.map((_, index) => index),
          values: (_, splits) => splits.map((index) => bars[index]?.label ?? ""),
        },
        { ...axis, size: 56, grid: { stroke: colour("borderTopColor"), width: 1 } },
      ],
      series: [
        {},
        {
          fill: colour("outlineColor"),
          stroke: colour("outlineColor"),
          width: 0,
          ...(UPlot.paths.bars && { paths: UPlot.paths.bars({ size: [0.82, 80] }) }),
          points: { show: false },
        },
      ],
    },
    [bars.map((_, index) => index), bars.map(({ count }) => count)],
    element,
  );
  const observer = new ResizeObserver(() => chart.setSize(size()));
  observer.observe(element);
  return {
    redraw: () => chart.redraw(),
    destroy() {
      observer.disconnect();
      chart.destroy();
    },
  };
}
