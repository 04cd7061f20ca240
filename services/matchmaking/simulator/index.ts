/** Simulates what the rules of a mode do to waiting times and skill gaps. */
export { type Arrival, generateArrivals, type PlayerOptions } from "./arrivals.ts";
export { computeFigures, type Figures, type Percentiles, toSkillGaps, toWaits } from "./figures.ts";
export { type Bar, computeHistogram } from "./histogram.ts";
export { type Outcome, simulate } from "./simulation.ts";
