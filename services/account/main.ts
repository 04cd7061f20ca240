/** Declares the account service and wires its parts. */
import { service } from "@todoke/service";
import { readSettings } from "./config.ts";
import { createCommands } from "./deps.ts";
import { accountRoutes } from "./routes/index.ts";
import { readNewestActs } from "./store/audit.ts";
import { accountAudit } from "./store/audit-rules.ts";
import { userLookups } from "./store/why.ts";
import { startExpiry } from "./workers/expiry.ts";

export const { audits, configErrors, dead, delays, events, migrate, start, why } = service({
  name: "account",
  port: 8081,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  emits: ["account.events"],
  audited: accountAudit,
  explains: userLookups,
  changes: readNewestActs,
  async build({ settings, hasRole, app, db, outbox, wakeRelay, authenticate, use, onError }) {
    if (hasRole("maintenance")) use(startExpiry({ db, outbox, onError }));
    if (hasRole("api")) {
      const commands = createCommands({ db, outbox, staff: settings.staff, onCommitted: wakeRelay });
      accountRoutes(app, { db, authenticate, ...commands });
    }
  },
});
