/** Adds points as a lot, which may expire. A lot that has already expired is refused. */
import type { ChangePoints, PointsCommand } from "./change-points.ts";

export function addPoints(changePoints: ChangePoints): PointsCommand<"ADD"> {
  return (key, change) => changePoints(key, { kind: "ADD", ...change });
}
