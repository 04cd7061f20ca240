/** The dependencies of the routes of user inboxes. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { InboxStreams } from "./workers/inbox-streams.ts";

export interface Deps {
  readonly db: Db;
  readonly authenticate: Authenticate;
  readonly streams: InboxStreams;
}
