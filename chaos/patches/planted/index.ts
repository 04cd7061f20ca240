/** All planted defects; the harness must catch each. */
import { claimDefects } from "./claims.ts";
import { commandDefects } from "./commands.ts";
import type { Planted } from "./defect.ts";
import { eventDefects } from "./events.ts";
import { matchmakingDefects } from "./matchmaking.ts";
import { orderDefects } from "./orders.ts";
import { playerDefects } from "./players.ts";
import { pointsDefects } from "./points.ts";
import { sendingDefects } from "./sending.ts";
import { transactionDefects } from "./transactions.ts";

export const planted: readonly Planted[] = [
  ...commandDefects,
  ...claimDefects,
  ...eventDefects,
  ...sendingDefects,
  ...orderDefects,
  ...transactionDefects,
  ...pointsDefects,
  ...playerDefects,
  ...matchmakingDefects,
];
