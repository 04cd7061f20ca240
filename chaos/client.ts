/**
 * Clients that send commands and repeat those without a definite response, with the same key and backoff, at any process. Some
 * stop after the first attempt. Everything is written to the history.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { tokenFor } from "./callers.ts";
import type { Command, Line, Writer } from "./history.ts";
import type { Random } from "./random.ts";
import { type Answer, endOf, get, post, type ServiceAddress } from "./request.ts";
import type { Part, WorkItem, Workload } from "./services/index.ts";

export interface ClientOptions {
  readonly workload: Workload;
  readonly random: Random;
  readonly history: Writer<Line>;
  /** Address of a serving process; undefined while there is none. */
  readonly where: () => ServiceAddress | undefined;
  readonly stopping: AbortSignal;
  readonly count: Counts;
}

/** Counters of all clients together. */
export interface Counts {
  commands: number;
  answered: number;
  requests: number;
  unknown: number;
}

type Answers = Map<Command, Answer>;

/** How long a client retries: longer than the longest outage. */
const retryMsMax = 45_000;
const backoffMs = { base: 50, cap: 1_000 };

/** Sends work items until stopped, one command per `intervalMs` on average; finishes the item in progress. */
export async function runClient(options: ClientOptions, intervalMs: number): Promise<void> {
  const { workload, stopping, random } = options;
  let due = performance.now() + random.next() * intervalMs;
  while (!stopping.aborted) {
    await sleep(Math.max(0, due - performance.now()), undefined, { signal: stopping }).catch(() => {});
    if (stopping.aborted) return;
    const item = workload.next();
    // After an outage at most 20 items are caught up.
    due = Math.max(due + intervalMs * item.commands.length, performance.now() - 20 * intervalMs);
    await runItem(options, item);
  }
}

async function runItem(options: ClientOptions, item: WorkItem): Promise<void> {
  const { count, workload, random } = options;
  count.commands += item.commands.length;
  const retryUntil = performance.now() + retryMsMax;
  const answers: Answers = new Map();
  let open = item.commands;
  for (let attempt = 1; ; attempt++) {
    for (const [command, answer] of await send(options, { ...item, commands: open }, attempt)) {
      answers.set(command, answer);
      if (answer.end === "ok") workload.onAccepted(command, answer.answer ?? "");
    }
    const unknown = open.filter((command) => answers.get(command)?.end === "unknown");
    count.answered += open.length - unknown.length;
    open = unknown;
    if (open.length === 0) return readBack(options, item, answers);
    if (item.impatient || performance.now() > retryUntil) {
      count.unknown += open.length;
      return;
    }
    await sleep(Math.min(backoffMs.cap, backoffMs.base * 2 ** attempt) * (0.5 + random.next()));
  }
}

/** Commands of a batch that stay unknown are retried one by one. */
async function send(options: ClientOptions, item: WorkItem, attempt: number): Promise<Answers> {
  if (item.by === "batch" && attempt === 1) return sendBatch(options, item);
  const copies = item.by === "twice" && attempt === 1 ? 2 : 1;
  const sent = item.commands.map(async (command) => {
    const answers = await Promise.all(Array.from({ length: copies }, () => sendOne(options, command, attempt)));
    return [command, answers.find(({ end }) => end !== "unknown") ?? answers[0]] as [Command, Answer];
  });
  return new Map(await Promise.all(sent));
}

async function sendOne(options: ClientOptions, command: Command, attempt: number): Promise<Answer> {
  const { method, path, key, body } = command;
  const from = Date.now();
  options.count.requests++;
  const answer = await post(options.where(), {
    ...(method && { method }),
    path,
    key,
    body,
    token: tokenFor(command.caller),
  });
  options.history.write({ command, attempt, from, to: Date.now(), ...answer });
  return answer;
}

async function sendBatch(options: ClientOptions, { commands, batch }: WorkItem): Promise<Answers> {
  const [first] = commands;
  if (!batch || !first) throw new Error("a batch item needs `batch`");
  const from = Date.now();
  options.count.requests++;
  const { path, body } = batch;
  const whole = await post(options.where(), { path, body, token: tokenFor(first.caller) });
  const to = Date.now();
  const parts = whole.end === "ok" ? batch.split(whole.answer ?? "") : [];
  return new Map(
    commands.map((command, index) => {
      const part = parts[index];
      const answer: Answer = part
        ? partToAnswer(part, whole.via)
        : { ...whole, end: whole.end === "ok" ? "unknown" : whole.end };
      options.history.write({ command, attempt: 1, from, to, ...answer });
      return [command, answer] as const;
    }),
  );
}

const partToAnswer = ({ status, body, replayed }: Part, via: string): Answer => ({
  via,
  end: endOf(status, body),
  status,
  answer: body,
  replayed,
});

/** Reads after a success, at any process: the version must not be older. */
async function readBack(
  options: ClientOptions,
  { commands, readBack: read }: WorkItem,
  answers: Answers,
): Promise<void> {
  const [command] = commands;
  const address = options.where();
  const answer = command && answers.get(command);
  if (!command || !read || !address || answer?.end !== "ok") return;
  const from = Date.now();
  const found = await get(address, read.path, tokenFor(command.caller));
  if (found === undefined) return;
  const seen = found === "" ? 0 : read.version(found);
  options.history.write({
    read: read.path,
    via: address.name,
    from,
    answered: read.version(answer.answer ?? ""),
    seen,
  });
}
