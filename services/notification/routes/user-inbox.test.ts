import type { Role } from "@todoke/http";
import { fixedId, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import {
  InboxClient,
  inboxProcess,
  openTransaction,
  readingKey,
  tokenFor,
  untilStable,
  writingKey,
} from "../stream/testing.ts";
import { setup } from "../testing.ts";

async function serve(more: Parameters<typeof inboxProcess>[1] = {}) {
  const t = await setup();
  const process = await inboxProcess(t, more);
  return {
    ...t,
    process,
    async get(path: string, headers: Record<string, string> = readingKey) {
      const response = await fetch(`${process.url}${path}`, { headers });
      return {
        status: response.status,
        ...((await response.json()) as { next_cursor?: string; last_event_id?: string }),
      };
    },
    async [Symbol.asyncDispose]() {
      await process[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

const ids = (page: object) =>
  (page as { notifications: { notification_id: string }[] }).notifications.map((n) => n.notification_id);

test("a user inbox is listed newest first, in pages, without delivery state", async () => {
  await using t = await serve();
  await t.write(2, 1, 3);
  await untilStable(t.db);
  const first = await t.get("/v1/users/u_123/inbox?limit=2");
  expect(ids(first)).toEqual([fixedId(3), fixedId(2)]);
  expect(first.last_event_id).toMatch(new RegExp(`^[1-9]\\d*\\.${fixedId(3)}$`));
  expect(await t.get(`/v1/users/u_123/inbox?limit=2&cursor=${first.next_cursor}`)).toEqual({
    status: 200,
    user_id: "u_123",
    notifications: [
      {
        notification_id: fixedId(1),
        event_type: "EntitlementGranted",
        text: { en: "item1", ja: "item1" },
        occurred_at: "2026-01-08T07:00:01.000001Z",
      },
    ],
  });
  const none = { notifications: [], last_event_id: "0.00000000-0000-0000-0000-000000000000" };
  expect(await t.get("/v1/users/u_12/inbox")).toEqual({ status: 200, user_id: "u_12", ...none });
});

test("data is the same in the list and in the stream", async () => {
  await using t = await serve();
  const data = { ticket_id: "t_1", match_id: "m_1", mode: "ranked", team: 2 };
  await using client = new InboxClient();
  await client.connect(`${t.process.url}/v1/users/u_123/inbox/stream`, readingKey);
  await t.writeWithData(1, data);
  await t.write(2);
  const list = await t.get("/v1/users/u_123/inbox");
  await until("both are received", () => client.received.length >= 2);
  const [second, first] = (list as unknown as { notifications: object[] }).notifications;
  expect(first).toMatchObject({ notification_id: fixedId(1), data });
  expect(second).not.toHaveProperty("data");
  expect(client.received).toEqual([first, second]);
});

test("nothing is lost between a list and the stream that continues it", async () => {
  await using t = await serve();
  await t.write(1, 2);
  await untilStable(t.db);
  await using open = await openTransaction(t.db);
  await open.query(`select pg_current_xact_id()`); // From here on, rows of other transactions are not stable.
  await t.write(3);
  const list = await t.get("/v1/users/u_123/inbox");
  expect(ids(list)).toEqual([fixedId(3), fixedId(2), fixedId(1)]);
  await open.commit();
  await t.write(4);
  await using client = new InboxClient();
  const from = `last_event_id=${list.last_event_id}`;
  await client.connect(`${t.process.url}/v1/users/u_123/inbox/stream?${from}`, readingKey);
  await until("both are received", () => client.received.length >= 2);
  // The third is in both: it was not stable when the list was read.
  const [third, fourth] = [3, 4].map((n) => ({
    notification_id: fixedId(n),
    text: { en: `item${n}`, ja: `item${n}` },
  }));
  expect(client.received).toMatchObject([third, fourth]);
  // A browser that reconnects sends the old id in its URL and the newer one in the header.
  client.cut();
  await client.over;
  await t.write(5);
  await client.connect(`${t.process.url}/v1/users/u_123/inbox/stream?${from}`, readingKey);
  await until("the fifth is received", () => client.received.length >= 3);
  expect(client.ids).toEqual([fixedId(3), fixedId(4), fixedId(5)]);
});

test("a user inbox is open to its user, to admins and to keys with the scope read", async () => {
  await using t = await serve();
  const as = async (userId: string, roles: Role[], audience = "notification") => ({
    authorization: `Bearer ${await tokenFor(audience, { userId, roles })}`,
  });
  const callers: [Record<string, string>, number][] = [
    [await as("u_123", ["USER"]), 200],
    [await as("u_12", ["USER"]), 403],
    [await as("u_12", ["USER", "ADMIN"]), 200],
    [readingKey, 200],
    [writingKey, 403],
    [{ authorization: `Bearer ${await tokenFor("notification")}` }, 403],
    [await as("u_123", ["USER"], "entitlement"), 401],
    [{}, 401],
    [{ "x-user-id": "u_123" }, 401],
  ];
  for (const [headers, status] of callers) {
    expect((await t.get("/v1/users/u_123/inbox", headers)).status).toBe(status);
    await using client = new InboxClient();
    expect(await client.connect(`${t.process.url}/v1/users/u_123/inbox/stream`, headers)).toBe(status);
  }
});

test("invalid requests are rejected by name, and HEAD opens no stream", async () => {
  await using t = await serve();
  const stream = "/v1/users/u_123/inbox/stream";
  const bad = [
    ["/v1/users/u_123/inbox?limit=1001", "query.limit"],
    ["/v1/users/u_123/inbox?cursor=nonsense", "query.cursor"],
    [`${stream}?last_event_id=1`, "query.last_event_id"],
    [`${stream}?last_event_id=99999999999999999999.${fixedId(1)}`, "query.last_event_id"],
  ] as const;
  for (const [path, field] of bad) {
    expect(await t.get(path)).toMatchObject({ status: 400, errors: [{ field }] });
  }
  expect(await t.get(stream, { ...readingKey, "last-event-id": "1; drop table" })).toMatchObject({
    status: 400,
    errors: [{ field: "header.last-event-id" }],
  });
  const head = await fetch(`${t.process.url}${stream}`, { method: "HEAD", headers: readingKey });
  expect([head.status, t.process.streams.size]).toEqual([405, 0]);
});

test("streams per user and per process are limited, and a closed one makes room", async () => {
  await using t = await serve({ streamsMax: 6 });
  await using open = new AsyncDisposableStack();
  const connect = async (userId: string) => {
    const client = open.use(new InboxClient());
    return { client, status: await client.connect(`${t.process.url}/v1/users/${userId}/inbox/stream`, readingKey) };
  };
  const five = await Promise.all([1, 2, 3, 4, 5].map(() => connect("u_123")));
  expect(five.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect((await connect("u_123")).status).toBe(429); // An accepted stream would never end, and `get` waits for the end.
  expect(await t.get("/v1/users/u_123/inbox/stream")).toMatchObject({ status: 429, code: "too-many-streams" });
  expect((await connect("u_12")).status).toBe(200);
  expect(await t.get("/v1/users/u_1/inbox/stream")).toMatchObject({ status: 503, code: "unavailable" });
  five[0]?.client.cut();
  await until("it is closed", () => t.process.streams.size === 5);
  expect((await connect("u_123")).status).toBe(200);
});
