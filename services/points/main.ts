/** What the points service is put together from. */
import { consumers } from "@todoke/contracts";
import { service } from "@todoke/service";
import { changePoints } from "./commands/change-points.ts";
import { changeSchedule } from "./commands/change-schedule.ts";
import { changeScheduleUsers } from "./commands/change-schedule-users.ts";
import { createSchedule } from "./commands/create-schedule.ts";
import { readSettings } from "./config.ts";
import { keepExpiring } from "./expiry.ts";
import { cancel, onReservationDue, reserve, scheduler } from "./reservations/index.ts";
import { pointsRoutes } from "./routes/index.ts";
import { tellGranted, toldCancel, toldChange, toldReserve, watchReservations } from "./telemetry.ts";

export const { configFaults, dead, events, migrate, start } = service({
  name: "points",
  port: 8085,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  roles: ["scheduler"],
  emits: ["points.events", "points.reservations"],
  consumes: { subjects: consumers.points, role: "worker" },
  async build({ settings, hasRole, app, db, wakeups, wakeRelay, authenticate, use, onError, topicOf }) {
    const { schedulerMs, inFlightMax } = settings;
    const topic = topicOf("point_reservations");
    const wakeScheduler = () => wakeups.signal(topic);
    if (hasRole("maintenance")) {
      use(keepExpiring(db, { onCommitted: wakeRelay, onError }));
      use(watchReservations(db, onError));
    }
    if (hasRole("scheduler"))
      use(scheduler({ db, wakeups, topic, everyMs: schedulerMs, inFlightMax, onSent: wakeRelay, onError })).start();
    if (hasRole("api"))
      pointsRoutes(app, {
        db,
        authenticate,
        changePoints: toldChange(changePoints(db, wakeRelay)),
        reserve: toldReserve(reserve({ db, onSoon: wakeScheduler, soonMs: schedulerMs })),
        cancel: toldCancel(cancel(db)),
        createSchedule: createSchedule(db, wakeScheduler),
        changeSchedule: changeSchedule(db, wakeScheduler),
        changeScheduleUsers: changeScheduleUsers(db),
      });
    return onReservationDue({ wake: wakeRelay, onGranted: tellGranted });
  },
});
