/** All planted defects: kinds that have been seen in the field, each of which the harness must catch. */
import { claimDefects } from "./claims.ts";
import { commandDefects } from "./commands.ts";
import type { Planted } from "./defect.ts";
import { eventDefects } from "./events.ts";
import { orderDefects } from "./orders.ts";
import { sendingDefects } from "./sending.ts";

export const planted: readonly Planted[] = [
  ...commandDefects,
  ...claimDefects,
  ...eventDefects,
  ...sendingDefects,
  ...orderDefects,
];
