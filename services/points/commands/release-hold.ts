/** Returns the points of a hold to the lots that they came from. */
import type { ChangePoints, PointsCommand } from "./change-points.ts";

export function releaseHold(changePoints: ChangePoints): PointsCommand<"RELEASE"> {
  return (key, change) => changePoints(key, { kind: "RELEASE", ...change });
}
