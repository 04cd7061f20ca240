/** The matchmaking service, for the `todoke` command. */
export { configFaults, dead, events, migrate, start } from "./main.ts";
export { type RecordedTicket, selectRecordedTickets } from "./store/recorded-tickets.ts";
