/** Schemas of the routes for staff. */
import { named, oneOf, orNull } from "@todoke/contracts/api";
import { NextCursor, PageQuery } from "@todoke/http";
import { type Static, Type } from "typebox";

const time = Type.String({ format: "date-time" });
const Any = (description: string) => Type.Unsafe<unknown>({ description });

const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "Why; recorded in the audit log.",
  examples: ["the receiver works again"],
});

const TableName = Type.String({
  minLength: 1,
  maxLength: 63,
  description: "A table with dead letters.",
  examples: ["notifications"],
});
const RowId = Type.String({ minLength: 1, maxLength: 128, description: "The id of a dead letter." });
const Group = Type.String({
  pattern: "^[0-9a-f]{32}$",
  description: "The error: rows with the same one differ in numbers and ids only.",
});

const text = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

export const FilterQuery = {
  group: Type.Optional(Group),
  event_type: text(128, "Only events of this type."),
  error: text(200, "Only errors that contain this text."),
  user_id: text(128, "Only rows of this user."),
};
export const Filter = named("DeadLetterFilter", FilterQuery);
export type Filter = Static<typeof Filter>;

const rowsMax = 200;
/** The rows of a page, or of one act. */
export const ListQuery = Type.Object({
  ...FilterQuery,
  ...PageQuery,
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: rowsMax, description: "Rows per page at most; the default is 50." }),
  ),
});

export const RowsBody = named("DeadLetterActRequest", {
  ids: Type.Array(RowId, { minItems: 1, maxItems: rowsMax, description: "The dead letters." }),
  reason: Reason,
});
export const RowsResult = named("DeadLetterActResult", {
  applied: Type.Array(RowId, { description: "The dead letters that were changed." }),
  unchanged: Type.Array(RowId, { description: "Those that were not dead, or no longer." }),
});

export const TableParams = Type.Object({ table: TableName });
export const RowParams = Type.Object({ table: TableName, id: RowId });

const row = {
  id: RowId,
  event_type: Type.String(),
  about: Type.String({ description: "The user or the aggregate." }),
  attempt_count: Type.Integer({ description: "Attempts so far." }),
  last_error: orNull(Type.String()),
  since: time,
  group: Group,
};
const StaffDeadLetter = named("DeadLetter", row);
export const DeadLetterPage = named("DeadLetterPage", {
  dead_letters: Type.Array(StaffDeadLetter),
  next_cursor: NextCursor,
});

export const DeadLetterDetail = named("DeadLetterDetail", {
  ...row,
  event_type: orNull(Type.String()),
  about: orNull(Type.String()),
  since: orNull(time),
  group: orNull(Group),
  state: oneOf(["dead", "not dead", "discarded"], { description: "not dead: it was redriven." }),
  payload: Any("The event or notification as JSON, if it can be read."),
  payload_base64: Type.Optional(Type.String({ description: "The event as received, if it is stored encoded." })),
  headers: Type.Optional(Type.Record(Type.String(), Type.String())),
  fields: Type.Record(Type.String(), Type.Unknown(), { description: "All other columns." }),
  redrives: Type.Array(
    named("StaffRedrive", {
      redriven_at: time,
      redriven_by: Type.String(),
      reason: Type.String(),
      attempt_count: Type.Integer(),
      last_error: orNull(Type.String()),
    }),
    { description: "The last 20 redrives, newest first." },
  ),
  discarded: Type.Optional(
    named("StaffDiscard", {
      at: time,
      by: Type.String(),
      reason: Type.String(),
      copy_removed_at: orNull(
        Type.String({ format: "date-time", description: "When the copy of the row was removed by age." }),
      ),
    }),
  ),
});

export const PreviewView = named("DeadLetterPreview", {
  count: Type.Integer({ description: "The dead letters that match now." }),
  capped: Type.Boolean({ description: "True if there are more." }),
  through: orNull(
    Type.String({ description: "Send it with the batch: rows that become dead later are not included." }),
  ),
});

const GroupView = named("DeadLetterGroup", {
  service: Type.String(),
  table: TableName,
  group: Group,
  error: Type.String({ description: "The first line of the error, with # for numbers and ids." }),
  example: orNull(Type.String({ description: "The error of the newest row." })),
  example_id: RowId,
  count: Type.Integer(),
  first_at: time,
  last_at: time,
});
export const GroupsView = {
  groups: Type.Array(GroupView, { description: "The most frequent first." }),
  tables: Type.Array(
    named("DeadLetterTable", {
      service: Type.String(),
      table: TableName,
      dead: Type.Integer(),
      capped: Type.Boolean({ description: "True if there are more than were counted." }),
    }),
  ),
};
export const GroupsQuery = Type.Object({ table: Type.Optional(TableName) });

export const BatchBody = named("DeadLetterBatchRequest", {
  act: oneOf(["redrive", "discard"]),
  table: TableName,
  filter: Type.Optional(Filter),
  all: Type.Optional(Type.Boolean({ description: "Must be true for a batch without a filter." })),
  through: Type.String({ pattern: "^[1-9][0-9]{0,17}$", description: "From the preview." }),
  reason: Reason,
});
export const BatchView = named("DeadLetterBatch", {
  batch_id: Type.String({ format: "uuid" }),
  service: Type.String(),
  act: oneOf(["redrive", "discard"]),
  table: TableName,
  filter: named("DeadLetterBatchFilter", FilterQuery),
  reason: Type.String(),
  created_by: Type.String(),
  created_at: time,
  state: oneOf(["RUNNING", "DONE", "STOPPED"]),
  total: Type.Integer({ description: "The rows that matched when it began." }),
  total_capped: Type.Boolean(),
  examined: Type.Integer({ description: "The rows so far." }),
  applied: Type.Integer({ description: "Of them, those that were still dead." }),
  finished_at: orNull(time),
  error: orNull(Type.String({ description: "Why the last step failed; the step is retried." })),
});
export type BatchView = Static<typeof BatchView>;
export const BatchesView = named("DeadLetterBatches", { batches: Type.Array(BatchView) });
export const BatchParams = Type.Object({
  batch_id: Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" }),
});
export const StopBody = named("StopBatchRequest", { reason: Reason });

export const StaffActView = named("StaffAct", {
  act_id: Type.String(),
  at: time,
  actor: Type.String({ examples: ["user:<id>"] }),
  role: orNull(oneOf(["VIEWER", "OPERATOR", "ADMIN"])),
  act: Type.String({ description: "The operation.", examples: ["redriveDeadLetters"] }),
  target: Type.String({ description: "The target of the operation." }),
  reason: orNull(Type.String()),
  details: Type.Record(Type.String(), Type.Unknown()),
  undoes: orNull(Type.String()),
  undone_by: orNull(Type.String()),
});
export const AuditQuery = {
  actor: text(160, "Only acts of this person: user:<id>."),
  target: text(400, "Only acts on this target."),
  ...PageQuery,
};
export const AuditPage = named("StaffActPage", { acts: Type.Array(StaffActView), next_cursor: NextCursor });
