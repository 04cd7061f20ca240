import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { post, RawConnection } from "@todoke/http/testing";
import { resolveProgram, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";

interface ChildOptions {
  readonly graceMs?: number;
  readonly deadlineMs?: number;
  readonly exitMs?: number;
}

/** The service of testing/service.ts, in a process that can be signalled. */
class Child implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #output = "";
  #errors = "";

  private constructor({ graceMs = 0, deadlineMs = 20_000, exitMs = 25_000 }: ChildOptions) {
    const program = resolveProgram(new URL("./testing/service.ts", import.meta.url));
    const settings = [graceMs, deadlineMs, exitMs].map(String);
    this.#process = spawn(process.execPath, [program, ...settings], { stdio: ["ignore", "pipe", "pipe"] });
    this.#process.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#output += text;
    });
    this.#process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    this.#ended = once(this.#process, "close");
  }

  static async start(options: ChildOptions = {}): Promise<Child> {
    const child = new Child(options);
    await until("the child listens", () => child.url !== "");
    return child;
  }

  get url(): string {
    return this.#output.match(/http:\S+/)?.[0] ?? "";
  }

  get begun(): number {
    return this.#output.split("begun\n").length - 1;
  }

  get completed(): number {
    return Number(this.#output.match(/completed (\d+)/)?.[1]);
  }

  get errors(): string {
    return this.#errors;
  }

  get exitCode(): number | null {
    return this.#process.exitCode;
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  open(): Promise<RawConnection> {
    return RawConnection.open(this.url);
  }

  /** Also until its output is complete. */
  async untilExit(): Promise<number | null> {
    await this.#ended;
    return this.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
  }
}

const work = (ms: number) => post("/work", { ms });
/** What is in flight when the process is stopped. */
const workUntilStop = work(-200);

test("SIGTERM during 50 requests: each gets a response, no new one is accepted, the exit code is 0", async () => {
  await using child = await Child.start();
  const connections = await Promise.all(Array.from({ length: 50 }, () => child.open()));
  for (const connection of connections) connection.send(workUntilStop);
  await until("all are being carried out", () => child.begun === 50);

  child.signal("SIGTERM");

  for (const connection of connections) {
    expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*connection: close\r\n/i);
  }
  expect(await child.untilExit()).toBe(0);
  expect(child.completed).toBe(50);
  await expect(child.open()).rejects.toThrow("ECONNREFUSED");
});

test("a stop under load: every completed request got its response", async () => {
  await using child = await Child.start();
  const load = Array.from({ length: 16 }, () => requestsUntilClosed(child));
  await until("the load is on", () => child.begun > 200);

  child.signal("SIGTERM");

  const responses = (await Promise.all(load)).reduce((sum, count) => sum + count, 0);
  expect(await child.untilExit()).toBe(0);
  expect(responses).toBe(child.completed);
});

/** One connection that sends the next request after each response; returns the number of responses. */
async function requestsUntilClosed(child: Child): Promise<number> {
  await using connection = await child.open();
  for (let sent = 0; !connection.closed; sent++) {
    connection.send(work(sent % 5));
    await until("a response or the end", () => connection.statuses.length > sent || connection.closed);
  }
  expect(connection.statuses.every((status) => status === 200)).toBe(true);
  return connection.statuses.length;
}

test("pipelined requests all get a response when the stop comes during the first", async () => {
  await using child = await Child.start();
  await using connection = await child.open();
  connection.send(workUntilStop + work(1) + work(-300) + work(1));
  await until("all are being carried out", () => child.begun === 4);

  child.signal("SIGTERM");

  await connection.untilClosed();
  expect(connection.statuses).toEqual([200, 200, 200, 200]);
  expect(await child.untilExit()).toBe(0);
});

test("requests pipelined during the grace period all get a response; the last says close", async () => {
  await using child = await Child.start({ graceMs: 60_000, deadlineMs: 120_000, exitMs: 120_000 });
  await using connection = await child.open();
  child.signal("SIGTERM");
  await until("it is not ready", async () => (await fetch(`${child.url}/readyz`)).status === 503);

  connection.send(work(200) + work(1) + work(100));

  const responses = (await connection.untilClosed()).split("HTTP/1.1 200 ").slice(1);
  expect(responses.map((response) => /connection: close/i.test(response))).toEqual([false, false, true]);
});

test("idle connections do not delay the stop", async () => {
  await using child = await Child.start();
  const [silent, kept, halfway] = await Promise.all([child.open(), child.open(), child.open()]);
  kept.send(work(0));
  await kept.untilAnswers(1);
  halfway.send("POST /work HTTP/1.1\r\nHost:");

  child.signal("SIGTERM");

  expect(await child.untilExit()).toBe(0);
  for (const connection of [silent, kept, halfway]) await connection.untilClosed();
});

test("during the grace period it is not ready, serves, and asks clients to close", async () => {
  await using child = await Child.start({ graceMs: 8_000 });
  expect((await fetch(`${child.url}/readyz`)).status).toBe(200);

  child.signal("SIGTERM");

  await until("it is not ready", async () => (await fetch(`${child.url}/readyz`)).status === 503);
  const response = await fetch(`${child.url}/work`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ms: 0 }),
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("connection")).toBe("close");
  expect(await child.untilExit()).toBe(0);
});

test("a request that exceeds the deadline is cut; a process that cannot stop reports it and exits with code 1", async () => {
  await using child = await Child.start({ deadlineMs: 200, exitMs: 800 });
  await using connection = await child.open();
  connection.send(work(60_000));
  await until("it is being carried out", () => child.begun === 1);

  child.signal("SIGTERM");

  expect(await connection.untilClosed()).toBe("");
  expect(await child.untilExit()).toBe(1);
  expect(child.errors).toContain("The stop took longer than 0.8 s.");
});

test("a second signal ends the process with code 1", async () => {
  await using child = await Child.start();
  await using connection = await child.open();
  connection.send(work(60_000));
  await until("it is being carried out", () => child.begun === 1);

  await until("it has ended", () => {
    child.signal("SIGINT");
    return child.exitCode !== null;
  });

  expect(child.exitCode).toBe(1);
});

test("a signal repeated by npm does not count as a second one", async () => {
  await using child = await Child.start();
  await using connection = await child.open();
  connection.send(work(300));
  await until("it is being carried out", () => child.begun === 1);

  child.signal("SIGINT");
  child.signal("SIGINT");
  child.signal("SIGTERM");

  expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 200 /);
  expect(await child.untilExit()).toBe(0);
});
