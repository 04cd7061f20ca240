/** What the account service is put together from. */
import { service } from "@todoke/service";
import { openCommands } from "./commands/index.ts";
import { readSettings } from "./config.ts";
import { keepEndingSuspensions } from "./expiry.ts";
import { accountRoutes } from "./routes/index.ts";

export const { configFaults, dead, events, migrate, start } = service({
  name: "account",
  port: 8081,
  migrations: new URL("./migrations/", import.meta.url),
  settings: readSettings,
  emits: ["account.events"],
  async build({ settings, hasRole, app, db, outbox, wakeRelay, authenticate, use, onError }) {
    if (hasRole("maintenance")) use(keepEndingSuspensions(db, { onCommitted: wakeRelay, onError }));
    if (hasRole("api")) {
      const commands = openCommands({ db, outbox, admins: settings.admins, onCommitted: wakeRelay });
      accountRoutes(app, { db, authenticate, ...commands });
    }
  },
});
