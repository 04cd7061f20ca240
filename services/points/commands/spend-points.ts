/** Spends points, those that expire soonest first, and never more than the balance. */
import type { ChangePoints, PointsCommand } from "./change-points.ts";

export function spendPoints(changePoints: ChangePoints): PointsCommand<"SUB"> {
  return (key, change) => changePoints(key, { kind: "SUB", ...change });
}
