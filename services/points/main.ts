/** Wires the service together. */
import { consumers } from "@todoke/contracts";
import { service } from "@todoke/service";
import { createCommands } from "./commands/create-commands.ts";
import { readSettings } from "./config.ts";
import { onPointReservationDue } from "./events/on-point-reservation-due.ts";
import { pointsRoutes } from "./routes/index.ts";
import { pointsAudit } from "./store/audit.ts";
import { readReservationDelays } from "./store/dispatch-reservations.ts";
import { pointsLookups } from "./store/why.ts";
import { observeReservations, recordGrantDelays } from "./telemetry.ts";
import { startExpiry } from "./workers/expiry.ts";
import { createScheduler } from "./workers/scheduler.ts";

export const { audits, configErrors, dead, delays, events, migrate, start, why } = service({
  name: "points",
  port: 8085,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  roles: ["scheduler"],
  emits: ["points.events", "points.reservations"],
  consumes: { subjects: consumers.points, role: "worker" },
  delays: readReservationDelays,
  audited: pointsAudit,
  explains: pointsLookups,
  async build({
    settings,
    hasRole,
    app,
    db,
    isBusInDatabase,
    wakeups,
    wakeRelay,
    authenticate,
    use,
    onError,
    topicOf,
  }) {
    const { schedulerMs, inFlightMax } = settings;
    const topic = topicOf("point_reservations");
    const wakeScheduler = () => wakeups.signal(topic);
    if (hasRole("maintenance")) {
      use(startExpiry(db, { onCommitted: wakeRelay, onError }));
      use(observeReservations(db, onError));
    }
    if (hasRole("scheduler")) {
      const onGranted = isBusInDatabase && hasRole("worker") ? recordGrantDelays : undefined;
      const options = { db, wakeups, topic, intervalMs: schedulerMs, inFlightMax };
      use(createScheduler({ ...options, onSent: wakeRelay, onGranted, onError })).start();
    }
    if (hasRole("api")) {
      const commands = createCommands({ db, wakeRelay, wakeScheduler, soonMs: schedulerMs });
      pointsRoutes(app, { db, authenticate, ...commands });
    }
    return onPointReservationDue({ wake: wakeRelay, onGranted: recordGrantDelays });
  },
});
