/** Blocks points until they are captured or released, or until the hold expires. */
import type { ChangePoints, PointsCommand } from "./change-points.ts";

export function placeHold(changePoints: ChangePoints): PointsCommand<"HOLD"> {
  return (key, change) => changePoints(key, { kind: "HOLD", ...change });
}
