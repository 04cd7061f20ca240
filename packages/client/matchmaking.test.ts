import { expect, onTestFinished, test, vi } from "vitest";
import { createClient, TicketEnded } from "./index.ts";
import { fakeFetch, json, lost } from "./testing/fake-fetch.ts";

/** `matched` while the ticket is as these polls say. */
async function join(polls: readonly object[], heartbeat = json({ ticket_id: "t_1", status: "QUEUED" })) {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let poll = 0;
  const { fetch, sent } = fakeFetch((request) => {
    if (request.url.endsWith("/tickets")) return json({ ticket_id: "t_1", status: "QUEUED" }, {}, 201)(request);
    if (request.url.endsWith(":heartbeat")) return heartbeat(request);
    return json({ ticket_id: "t_1", ...polls[Math.min(poll++, polls.length - 1)] })(request);
  });
  const { matchmaking } = createClient({ gateway: "http://g.example", session: "tds_1", fetch });
  const ended = matchmaking
    .join("ranked", { attributes: { skill: 1 } })
    .matched()
    .catch((error) => error);
  for (let n = 0; n < polls.length; n++) await vi.advanceTimersByTimeAsync(1_000);
  return { ended: await ended, sent, heartbeats: sent.filter(({ url }) => url.endsWith(":heartbeat")).length };
}

const queued = { status: "QUEUED" };
const needsHeartbeats = { ...queued, heartbeat_before: "2030-01-01T00:00:00Z" };
const matched = { status: "MATCHED", match_id: "m_1" };

test("a ticket is awaited until it is matched", async () => {
  const { ended, sent, heartbeats } = await join([queued, queued, matched]);
  expect(ended).toMatchObject(matched);
  expect(JSON.parse(sent[0]?.body ?? "")).toMatchObject({ attributes: { skill: 1 } });
  expect([sent.length, heartbeats]).toEqual([4, 0]);
});

test("a ticket that needs heartbeats gets them, and one that is lost does no harm", async () => {
  const polls = [...Array(6).fill(needsHeartbeats), matched];
  for (const heartbeat of [json(queued), lost]) {
    const { ended, heartbeats } = await join(polls, heartbeat);
    expect(ended).toMatchObject(matched);
    expect(heartbeats).toBe(2);
  }
});

test("a ticket that ends without a match is an error with the ticket", async () => {
  const { ended } = await join([queued, { status: "EXPIRED", reason: "timeout" }]);
  expect(ended).toBeInstanceOf(TicketEnded);
  expect(ended.message).toBe("The ticket t_1 is EXPIRED (timeout).");
});
