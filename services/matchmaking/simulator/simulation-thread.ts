/** The thread of one simulation: it sends the result and ends. */
import { parentPort, workerData } from "node:worker_threads";
import { generateArrivals } from "./arrivals.ts";
import { computeFigures, toSkillGaps, toWaits } from "./figures.ts";
import { computeHistogram } from "./histogram.ts";
import type { SimulationInput, SimulationResult } from "./run-in-thread.ts";
import { simulate } from "./simulation.ts";

const { rules, players } = workerData as SimulationInput;
const outcome = simulate(rules, generateArrivals(rules, players));
const result: SimulationResult = {
  figures: computeFigures(rules, outcome),
  waiting: computeHistogram(toWaits(outcome.matches)),
  skillGaps: computeHistogram(toSkillGaps(outcome.matches)),
};
parentPort?.postMessage(result);
