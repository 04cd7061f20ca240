/** The matchmaking service as the `todoke` command runs it. */
export { configFaults, dead, events, migrate, start } from "./main.ts";
export { type RecordedTicket, selectRecordedTickets } from "./store/recorded-tickets.ts";
