import { chmod, cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { EngineNotFound, startEngine } from "../index.ts";
import { startPrivateEngine } from "../private-engine.ts";
import { startOwner, temporaryFolder } from "../testing.ts";
import { findBinaries } from "./binaries.ts";
import { query } from "./client.ts";
import { postgres } from "./index.ts";

test("a kept folder opens again with its data and the same password", async () => {
  using tmp = await temporaryFolder();
  const first = await startEngine("postgres", { dir: tmp.path });
  await query(first.url, "create table kept as select 1 as one");
  await first[Symbol.asyncDispose]();
  expect(tmp.entries()).toEqual(["data"]);

  await using again = await startEngine("postgres", { dir: tmp.path });
  expect(new URL(again.url).password).toBe(new URL(first.url).password);
  expect(await query(again.url, "select one from kept")).toHaveLength(1);
});

test("a folder opens again at once after a kill -9 of its server and owner", async () => {
  using tmp = await temporaryFolder();
  const dir = join(tmp.path, "kept");
  await using owner = await startOwner("postgres", { tmp: tmp.path, dir });
  await query(owner.url, "create table kept as select 1 as one");
  process.kill(owner.pid, "SIGKILL");
  await owner.end("SIGKILL");
  await using again = await startEngine("postgres", { dir });
  expect(await query(again.url, "select one from kept")).toHaveLength(1);
});

test("a pid file with the pid of another program does not stop a start", async () => {
  using tmp = await temporaryFolder();
  const engine = await startEngine("postgres", { dir: tmp.path });
  const file = join(tmp.path, "data", "postmaster.pid");
  const stale = await readFile(file, "utf8");
  await engine[Symbol.asyncDispose]();
  await writeFile(file, stale.replace(/^\d+/, String(process.pid)));

  await using again = await startEngine("postgres", { dir: tmp.path });
  expect(await query(again.url, "select 1 as one")).toHaveLength(1);
});

test("a folder with a running server is rejected, and that server keeps running", async () => {
  using tmp = await temporaryFolder();
  await using first = await startEngine("postgres", { dir: tmp.path });
  const { port } = new URL(first.url);
  await expect(startEngine("postgres", { dir: tmp.path })).rejects.toThrow(
    `already runs on ${join(tmp.path, "data")} (process ${first.pid}, port ${port})`,
  );
  expect(await query(first.url, "select 1 as one")).toHaveLength(1);
});

test("a folder of another major version is rejected and not changed", async () => {
  using tmp = await temporaryFolder();
  await using engine = await startEngine("postgres", { dir: tmp.path });
  await engine[Symbol.asyncDispose]();
  const versionFile = join(tmp.path, "data", "PG_VERSION");
  await writeFile(versionFile, "17\n");
  await expect(startEngine("postgres", { dir: tmp.path })).rejects.toThrow(
    `${tmp.path} holds data of PostgreSQL 17, and this is PostgreSQL 18.`,
  );
  expect(await readFile(versionFile, "utf8")).toBe("17\n");
});

test("two concurrent starts in one folder create one cluster", async () => {
  using tmp = await temporaryFolder();
  const both = await Promise.allSettled([1, 2].map(() => startEngine("postgres", { dir: tmp.path })));
  const started = both.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const rejected = both.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
  await Promise.all(started.map((engine) => engine[Symbol.asyncDispose]()));
  expect(started).toHaveLength(1);
  // The pid file is empty between its creation by the other server and its first write.
  expect(rejected.join()).toMatch(/already runs|lock file "postmaster.pid" (already exists|is empty)/);
  expect(tmp.entries()).toEqual(["data"]);
});

test("a cluster uses UTF-8, code point order, UTC and a password", async () => {
  await using engine = await startEngine("postgres");
  const settings = "select current_setting('server_encoding') as encoding, current_setting('timezone') as zone";
  expect(await query(engine.url, settings)).toEqual([{ encoding: "UTF8", zone: "UTC" }]);
  const sorted = "select string_agg(c, '' order by c) as sorted, upper('é') as upper from unnest(array['a','B','ä']) c";
  expect(await query(engine.url, sorted)).toEqual([{ sorted: "Baä", upper: "É" }]);
  const wrong = new URL(engine.url);
  wrong.password = "guess";
  await expect(query(wrong.href, "select 1")).rejects.toThrow("password authentication failed");
});

// Only root starts PostgreSQL as another user.
if (process.getuid?.() === 0 && process.platform === "linux") {
  test("root's PostgreSQL runs with a data folder and a node_modules that only root can read", async () => {
    using tmp = await temporaryFolder();
    const closed = join(tmp.path, "closed");
    await mkdir(closed);
    await chmod(closed, 0o700);
    const binary = await findBinaries();
    if (binary instanceof EngineNotFound) expect.fail(binary.message);
    await cp(dirname(dirname(binary.file)), join(closed, "native"), { recursive: true, verbatimSymlinks: true });
    const hidden = { ...binary, file: join(closed, "native", "bin", "postgres") };

    const first = await startPrivateEngine(postgres, hidden, { dir: join(closed, "kept") });
    await query(first.url, "create table kept as select 1 as one");
    await first[Symbol.asyncDispose]();
    await using again = await startPrivateEngine(postgres, hidden, { dir: join(closed, "kept") });
    expect(await query(again.url, "select one from kept")).toHaveLength(1);
  });
}
