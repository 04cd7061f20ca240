import type { Role } from "@todoke/http";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { watchChanges } from "../staff/watch-changes.ts";
import type { ProcessOptions } from "../testing.ts";
import { alice, bob, setup } from "../testing.ts";
import { answering, type Behaviour, refusing } from "../upstreams/testing.ts";

const fast = { intervalMs: 20, checkMs: 20, beatMs: 20 };
const viewer: { roles: readonly Role[] } = { roles: ["USER", "VIEWER"] };

interface Event {
  readonly event: string;
  readonly data: unknown;
}

/** A window: what it has been told, in order. */
async function follow(url: string, headers: Record<string, string>, search = "") {
  const leave = new AbortController();
  const answer = await fetch(`${url}/v1/admin/stream?${search}`, { headers, signal: leave.signal });
  const events: Event[] = [];
  const state = { isOver: false };
  const read = async () => {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of answer.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const frames = text.split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const [, event = "", data = ""] = /^event: (.*)\ndata: (.*)$/.exec(frame) ?? [];
        if (event !== "beat") events.push({ event, data: JSON.parse(data) });
      }
    }
  };
  void read()
    .catch(() => {})
    .finally(() => {
      state.isOver = true;
    });
  const has = (event: string) => until(event, async () => events.some((each) => each.event === event));
  const changed = () =>
    new Set(events.filter(({ event }) => event === "changed").flatMap(({ data }) => data as string[]));
  return { status: answer.status, events, state, has, changed, leave: () => leave.abort() };
}

async function serve() {
  const t = await setup();
  const topics = { "dead-letters": "1", overview: "1", [`id:${alice}`]: "1", [`id:${bob}`]: "1" };
  /** The digests of points, as it answers them for the ids that are asked for. */
  const behaviour: Behaviour = (response, received) => {
    const ids: string[] = JSON.parse(new URL(received.path, "http://points").searchParams.get("ids") ?? "[]");
    const isAsked = ([topic]: [string, string]) => !topic.startsWith("id:") || ids.includes(topic.slice(3));
    answering({ topics: Object.fromEntries(Object.entries(topics).filter(isAsked)) })(response, received);
  };
  t.services.points.setBehaviour(behaviour);
  async function listen(options: ProcessOptions = {}) {
    const app = await t.process({ changes: fast, ...options });
    return { app, url: await app.listen({ port: 0, host: "127.0.0.1" }) };
  }
  return { ...t, topics, listen, behaviour };
}

test("windows of two processes are told what changed of what they show, and nothing else", async () => {
  await using t = await serve();
  const [one, two] = [await t.listen(), await t.listen()];
  const { headers } = await t.logIn(bob, viewer);
  const windows = [
    await follow(one.url, headers, `id=${alice}`),
    await follow(two.url, headers, `id=${alice}`),
    await follow(two.url, headers),
  ] as const;
  for (const window of windows) await window.has("ready");
  expect(windows.map(({ events }) => events.length)).toEqual([1, 1, 1]);

  t.topics[`id:${alice}`] = "2";
  t.topics[`id:${bob}`] = "2";
  for (const window of windows.slice(0, 2)) await window.has("changed");
  expect(windows.map(({ changed }) => [...changed()])).toEqual([[`id:${alice}`], [`id:${alice}`], []]);

  t.topics["dead-letters"] = "2";
  for (const window of windows) await until("all have it", async () => window.changed().has("dead-letters"));

  // A service that stops answering is a change, and so is one that answers again.
  t.services.points.setBehaviour(refusing(503, "unavailable"));
  await until("one has it", async () => windows[0].changed().has("overview"));
});

test("all windows of a process share one question a round, and without a window there is none", async () => {
  const asked: (readonly string[])[] = [];
  const read = async ({ ids }: { readonly ids: readonly string[] }) => {
    asked.push(ids);
    return new Map(ids.map((id) => [`id:${id}`, "1"]));
  };
  await using watcher = watchChanges({ read, intervalMs: 1, onError: () => {} });
  const join = async (id: string) => {
    const ready = Promise.withResolvers<void>();
    const user = { userId: bob, roles: viewer.roles };
    const leave = watcher.join({
      ids: [id],
      user,
      watchesMatchmaking: false,
      onReady: ready.resolve,
      onChanged: () => {},
    });
    await ready.promise;
    return leave;
  };
  const leave = [await join("a"), await join("b"), await join("b")];
  expect(asked.at(-1)).toEqual(["a", "b"]);
  for (const each of leave) each();
  await new Promise((done) => setTimeout(done, 20));
  (await join("c"))();
  expect(asked.at(-1)).toEqual(["c"]);
  expect(asked).not.toContainEqual([]);
});

test("a window that has lost its stream is ready again at another process, and misses nothing from then on", async () => {
  await using t = await serve();
  const [one, two] = [await t.listen(), await t.listen()];
  const { headers } = await t.logIn(bob, viewer);
  const lost = await follow(one.url, headers, `id=${alice}`);
  await lost.has("ready");
  await one.app.close();
  await until("the stream is over", async () => lost.state.isOver);
  t.topics[`id:${alice}`] = "2";
  const again = await follow(two.url, headers, `id=${alice}`);
  await again.has("ready");
  t.topics[`id:${alice}`] = "3";
  await again.has("changed");
  expect([...again.changed()]).toEqual([`id:${alice}`]);
});

test("a stream ends with its session, and with the role of its user", async () => {
  await using t = await serve();
  const { url } = await t.listen();
  const [first, second, other] = [
    await t.logIn(alice, viewer),
    await t.logIn(alice, viewer),
    await t.logIn(bob, viewer),
  ];
  const [ended, demoted, kept] = [
    await follow(url, first.headers),
    await follow(url, second.headers),
    await follow(url, other.headers),
  ];
  for (const window of [ended, demoted, kept]) await window.has("ready");
  await t.sessions.end(alice, first.sessionId);
  await until("the first is over", async () => ended.state.isOver);
  expect(demoted.state.isOver).toBe(false);
  await t.sessions.saveUser({ userId: alice, status: "ACTIVE", roles: ["USER"], version: 2 });
  await until("the second is over", async () => demoted.state.isOver);
  // Its session is still there: it is the role that ended the stream.
  expect(await t.sessions.list(alice)).toMatchObject([{ sessionId: second.sessionId }]);
  expect(kept.state.isOver).toBe(false);
});

test("players have no stream, and a user has a bounded number of them", async () => {
  await using t = await serve();
  const { url } = await t.listen({ changes: { ...fast, streamsOfUserMax: 2 } });
  expect((await follow(url, {})).status).toBe(401);
  expect((await follow(url, (await t.logIn(alice)).headers)).status).toBe(403);
  const { headers } = await t.logIn(bob, viewer);
  const windows = [await follow(url, headers), await follow(url, headers)];
  for (const window of windows) await window.has("ready");
  expect((await follow(url, headers)).status).toBe(429);
  windows[0]?.leave();
  await until("a place is free", async () => (await follow(url, headers)).status === 200);
});
