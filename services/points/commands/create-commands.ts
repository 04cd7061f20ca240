/** The commands that the routes call. */
import type { Db } from "@todoke/kernel/db";
import { countChanges, countReservations } from "../telemetry.ts";
import { addPoints } from "./add-points.ts";
import { addScheduleUsers } from "./add-schedule-users.ts";
import { adjustPoints } from "./adjust-points.ts";
import { cancelReservation } from "./cancel-reservation.ts";
import { captureHold } from "./capture-hold.ts";
import { changePoints } from "./change-points.ts";
import { createSchedule } from "./create-schedule.ts";
import { endSchedule } from "./end-schedule.ts";
import { pauseSchedule } from "./pause-schedule.ts";
import { placeHold } from "./place-hold.ts";
import { refundPoints } from "./refund-points.ts";
import { releaseHold } from "./release-hold.ts";
import { removeScheduleUsers } from "./remove-schedule-users.ts";
import { reservePoints } from "./reserve-points.ts";
import { reservePointsBatch } from "./reserve-points-batch.ts";
import { resumeSchedule } from "./resume-schedule.ts";
import { spendPoints } from "./spend-points.ts";

export interface CommandOptions {
  readonly db: Db;
  readonly wakeRelay: () => void;
  readonly wakeScheduler: () => void;
  /** A reservation that is due sooner wakes the scheduler. */
  readonly soonMs: number;
}

export type Commands = ReturnType<typeof createCommands>;

export function createCommands({ db, wakeRelay, wakeScheduler, soonMs }: CommandOptions) {
  const change = changePoints(db, wakeRelay);
  const reserve = countReservations("reserve", reservePoints({ db, onSoon: wakeScheduler, soonMs }));
  return {
    addPoints: countChanges("ADD", addPoints(change)),
    spendPoints: countChanges("SUB", spendPoints(change)),
    adjustPoints: adjustPoints(db, wakeRelay),
    placeHold: countChanges("HOLD", placeHold(change)),
    captureHold: countChanges("CAPTURE", captureHold(change)),
    releaseHold: countChanges("RELEASE", releaseHold(change)),
    refundPoints: countChanges("REFUND", refundPoints(change)),
    reservePoints: reserve,
    reservePointsBatch: reservePointsBatch(reserve),
    cancelReservation: countReservations("cancel", cancelReservation(db)),
    createSchedule: createSchedule(db, wakeScheduler),
    pauseSchedule: pauseSchedule(db, wakeScheduler),
    resumeSchedule: resumeSchedule(db, wakeScheduler),
    endSchedule: endSchedule(db, wakeScheduler),
    addScheduleUsers: addScheduleUsers(db),
    removeScheduleUsers: removeScheduleUsers(db),
  };
}
