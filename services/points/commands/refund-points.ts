/** Returns what a SUB or a CAPTURE spent, all or a part, to the lots that it came from. */
import type { ChangePoints, PointsCommand } from "./change-points.ts";

export function refundPoints(changePoints: ChangePoints): PointsCommand<"REFUND"> {
  return (key, change) => changePoints(key, { kind: "REFUND", ...change });
}
