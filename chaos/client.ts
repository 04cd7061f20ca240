/**
 * Clients as real ones are: they send a command under its key, and when they do not hear, or hear that it failed, they
 * send it again under the same key, to whichever process comes next, with backoff. Some give up. All that they send and
 * hear goes into the history.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { tokenOf } from "./callers.ts";
import type { Command, Line, Writer } from "./history.ts";
import type { Random } from "./random.ts";
import { type Answer, endOf, get, type Place, post } from "./request.ts";
import type { Part, Wish, Workload } from "./services/index.ts";

export interface ClientOptions {
  readonly workload: Workload;
  readonly random: Random;
  readonly history: Writer<Line>;
  /** Where a process of the service serves now; undefined while none does. */
  readonly where: () => Place | undefined;
  readonly stopping: AbortSignal;
  readonly count: Counts;
}

/** What all clients together have done so far. */
export interface Counts {
  commands: number;
  answered: number;
  requests: number;
  unknown: number;
}

type Answers = Map<Command, Answer>;

/** How long a patient client keeps asking. Longer than the longest outage. */
const patienceMs = 45_000;
const backoffMs = { base: 50, cap: 1_000 };

/** Sends wish after wish, `everyMs` for each command on the average, until stopped; what is under way it finishes. */
export async function runClient(options: ClientOptions, everyMs: number): Promise<void> {
  const { workload, stopping, random } = options;
  let due = performance.now() + random.next() * everyMs;
  while (!stopping.aborted) {
    await sleep(Math.max(0, due - performance.now()), undefined, { signal: stopping }).catch(() => {});
    if (stopping.aborted) return;
    const wish = workload.next();
    // What an outage held up is made up for, but not for ever.
    due = Math.max(due + everyMs * wish.commands.length, performance.now() - 20 * everyMs);
    await carryOut(options, wish);
  }
}

async function carryOut(options: ClientOptions, wish: Wish): Promise<void> {
  const { count, workload, random } = options;
  count.commands += wish.commands.length;
  const giveUpAt = performance.now() + patienceMs;
  const answers: Answers = new Map();
  let open = wish.commands;
  for (let attempt = 1; ; attempt++) {
    for (const [command, answer] of await send(options, { ...wish, commands: open }, attempt)) {
      answers.set(command, answer);
      if (answer.end === "ok") workload.heard(command);
    }
    const unknown = open.filter((command) => answers.get(command)?.end === "unknown");
    count.answered += open.length - unknown.length;
    open = unknown;
    if (open.length === 0) return readBack(options, wish, answers);
    if (wish.impatient || performance.now() > giveUpAt) {
      count.unknown += open.length;
      return;
    }
    await sleep(Math.min(backoffMs.cap, backoffMs.base * 2 ** attempt) * (0.5 + random.next()));
  }
}

/** A batch that was answered in part is not sent again as it was: each of the rest goes its own way. */
async function send(options: ClientOptions, wish: Wish, attempt: number): Promise<Answers> {
  if (wish.by === "batch" && attempt === 1) return sendTogether(options, wish);
  const copies = wish.by === "twice" && attempt === 1 ? 2 : 1;
  const sent = wish.commands.map(async (command) => {
    const answers = await Promise.all(Array.from({ length: copies }, () => sendOne(options, command, attempt)));
    return [command, answers.find(({ end }) => end !== "unknown") ?? answers[0]] as [Command, Answer];
  });
  return new Map(await Promise.all(sent));
}

async function sendOne(options: ClientOptions, command: Command, attempt: number): Promise<Answer> {
  const { path, key, body } = command;
  const from = Date.now();
  options.count.requests++;
  const answer = await post(options.where(), { path, key, body, token: tokenOf(command.caller) });
  options.history.write({ command, attempt, from, to: Date.now(), ...answer });
  return answer;
}

async function sendTogether(options: ClientOptions, { commands, batch }: Wish): Promise<Answers> {
  const [first] = commands;
  if (!batch || !first) throw new Error("this wish does not say how its commands go together");
  const from = Date.now();
  options.count.requests++;
  const { path, body } = batch;
  const whole = await post(options.where(), { path, body, token: tokenOf(first.caller) });
  const to = Date.now();
  const parts = whole.end === "ok" ? batch.split(whole.answer ?? "") : [];
  return new Map(
    commands.map((command, place) => {
      const part = parts[place];
      const answer: Answer = part
        ? partOf(part, whole.via)
        : { ...whole, end: whole.end === "ok" ? "unknown" : whole.end };
      options.history.write({ command, attempt: 1, from, to, ...answer });
      return [command, answer] as const;
    }),
  );
}

const partOf = ({ status, body, replayed }: Part, via: string): Answer => ({
  via,
  end: endOf(status, body),
  status,
  answer: body,
  replayed,
});

/** Whoever was answered asks at once, perhaps another process, and must not be told of an earlier version. */
async function readBack(options: ClientOptions, { commands, readBack: read }: Wish, answers: Answers): Promise<void> {
  const [command] = commands;
  const place = options.where();
  const answer = command && answers.get(command);
  if (!command || !read || !place || answer?.end !== "ok") return;
  const from = Date.now();
  const said = await get(place, read.path, tokenOf(command.caller));
  if (said === undefined) return;
  const seen = said === "" ? 0 : read.version(said);
  options.history.write({ read: read.path, via: place.name, from, answered: read.version(answer.answer ?? ""), seen });
}
