/** The tags of operations, in the order in which a reader meets them. An operation has one: the resource that it is about. */
export const tags = {
  Sessions: "Log in and out, and manage the sessions of a user.",
  Account: "Users: their profile, status, roles, data and audit.",
  Entitlements: "Products that users may use: granted, revoked and expiring.",
  Points: "Balances of points, and the transactions that change them.",
  Holds: "Points that are blocked for a purchase until it is captured or released.",
  Reservations: "Grants of points at a future time.",
  Schedules: "Recurring grants of points to many users.",
  Orders: "Orders that are sent to a broker.",
  "Trading state": "The kill switch: stop and resume trading.",
  Queues: "The modes in which players can be matched.",
  Tickets: "Requests to play, from joining a queue until the match.",
  Notifications: "The inbox of a user, as a list and as a stream.",
  Operations:
    "Backlogs, dead letters and the audit log. Routes under /v1/admin are for staff; all others are served on the ops listener only, except in development.",
} as const;
