/** The rows of the dashboard: an overview, then each service, then the servers and what the services share. */
import { overview } from "./overview.ts";
import type { Row } from "./panel.ts";
import { serviceRows } from "./services.ts";
import { sharedRows } from "./shared.ts";

export const rows: readonly Row[] = [overview, ...serviceRows, ...sharedRows];
