/**
 * Runs services in this process, or in several that share the ports (docs/adr/0084). Then this process is their parent: it accepts
 * connections and passes them on, starts a process that has died again, and drains all of them at the end.
 */
import cluster from "node:cluster";
import { openOutput } from "@todoke/http";
import { CommandFailed } from "../errors.ts";
import { startServices } from "../run-services.ts";
import type { LoadedService } from "../select-services.ts";
import type { Env } from "../services.ts";
import type { StopSignal } from "../stop-signal.ts";
import { Child } from "./child.ts";
import { GroupQuestions } from "./group-questions.ts";
import { spreadRoles } from "./spread-roles.ts";

export { readProcessCount } from "./count.ts";
export { runServiceProcess } from "./service-process.ts";

export interface ProcessesOptions {
  readonly count: number;
  readonly loaded: readonly LoadedService[];
  readonly env: Env;
  readonly stop: StopSignal;
  /** Called once, when every process is ready, with the URL of each service. */
  readonly onReady: (urls: Readonly<Record<string, string>>) => void | Promise<void>;
}

/** Runs the services until a stop is requested. Resolves when all have stopped in order. */
export async function runServices(options: ProcessesOptions): Promise<void> {
  if (options.count > 1) return await runProcesses(options);
  const { loaded, env, stop, onReady } = options;
  await using running = await startServices(loaded, { env, stop });
  const urls = Object.fromEntries(running.all.map(({ entry, url }) => [entry.name, url]));
  await Promise.all([onReady(urls), running.waitForStop()]);
}

async function runProcesses({ stop, onReady, ...options }: ProcessesOptions): Promise<void> {
  const failed = Promise.withResolvers<never>();
  const children = startChildren(options, failed.reject);
  const killAll = () => children.forEach((child) => void child.kill());
  process.once("exit", killAll); // After a second signal, and at the deadline of the stop.
  const stopAll = () => Promise.all(children.map(async (child) => ((await child.stop()) ? [] : [child.number])));
  try {
    const ready = Promise.all(children.map((child) => child.ready)).then(([urls = {}]) => onReady(urls));
    await Promise.race([ready, stop.requested, failed.promise]);
    await Promise.race([stop.requested, failed.promise]);
  } catch (error) {
    await stopAll();
    throw error;
  }
  const late = (await stopAll()).flat();
  process.off("exit", killAll);
  if (late.length > 0) throw new CommandFailed(`Process ${late.join(", ")} did not stop in order.`);
}

function startChildren(
  { count, loaded, env }: Pick<ProcessesOptions, "count" | "loaded" | "env">,
  onFailure: (error: CommandFailed) => void,
): readonly Child[] {
  // Round-robin, so that all get equally many connections; the operating system would prefer some.
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ silent: true, serialization: "advanced" });
  const entries = loaded.map(({ entry }) => entry);
  const names = entries.map(({ name }) => name);
  // The processes write to a pipe; the reader is at our own output.
  const format = process.stdout.isTTY ? "text" : "json";
  const logged = { ...env, LOG_FORMAT: env.LOG_FORMAT || format };
  const questions = new GroupQuestions();
  const output = openOutput();
  const children: Child[] = [];
  for (let number = 1; number <= count; number++)
    children.push(
      new Child({
        start: { kind: "start", number, names, env: spreadRoles(logged, { number, count, entries }) },
        writeLog: (lines) => output.write(lines),
        onAsk: async ({ id, question, of }) => {
          const running = children.flatMap((child) => child.asked ?? []);
          return { kind: "answers", id, answers: await questions.ask(running, question, of) };
        },
        onAnswer: (from, answer) => questions.answer(from, answer),
        onGone: (gone) => questions.onGone(gone),
        onFailure,
      }),
    );
  return children;
}
