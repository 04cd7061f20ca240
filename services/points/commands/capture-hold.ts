/** Spends the points of a hold, all or a part, and releases the rest. */
import type { ChangePoints, PointsCommand } from "./change-points.ts";

export function captureHold(changePoints: ChangePoints): PointsCommand<"CAPTURE"> {
  return (key, change) => changePoints(key, { kind: "CAPTURE", ...change });
}
