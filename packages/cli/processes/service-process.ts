/**
 * A service process of `--processes`: its parent sends the names of the services, and it runs them as a command of one process
 * does.
 */
import cluster from "node:cluster";
import { once } from "node:events";
import type { GroupAnswer, GroupQuestion, ProcessGroup } from "@todoke/service";
import { startServices } from "../run-services.ts";
import { selectServices } from "../select-services.ts";
import type { ServiceEntry } from "../services.ts";
import { Stopped } from "../stop-signal.ts";
import type { FromProcess, ToProcess } from "./messages.ts";

export async function runServiceProcess(services: readonly ServiceEntry[]): Promise<number> {
  const { onStopSignals } = await import("@todoke/service");
  const requested = Promise.withResolvers<void>();
  let isStopping = false;
  const stop = async () => {
    isStopping = true;
    requested.resolve();
  };
  onStopSignals(stop);
  // Node would exit at once when the parent has exited. An orderly stop releases its jobs to others at once.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  send({ kind: "loaded" });
  const [message] = (await once(process, "message")) as [ToProcess];
  if (message.kind !== "start") throw new Error(`expected "start" from the parent, got "${message.kind}"`);
  const { number, names, env } = message;
  const loaded = await Promise.all(
    selectServices(services, names, env).map(async (entry) => ({ entry, service: await entry.load() })),
  );
  const signal = {
    requested: requested.promise,
    throwIfRequested() {
      if (isStopping) throw new Stopped();
    },
  };
  await using running = await startServices(loaded, { env, stop: signal, group: joinGroup(number) });
  send({ kind: "ready", urls: Object.fromEntries(running.all.map(({ entry, url }) => [entry.name, url])) });
  await running.waitForStop();
  return 0;
}

/** A parent that has exited reads nothing; "disconnect" has begun the stop. */
function send(message: FromProcess): void {
  if (process.connected) process.send?.(message, () => {});
}

type Answer = () => Promise<unknown>;

function joinGroup(number: number): ProcessGroup {
  const answers = new Map<string, Answer>([["liveness", async () => true]]);
  const asked = new Map<number, (answers: readonly GroupAnswer<GroupQuestion>[]) => void>();
  let lastId = 0;
  const keyOf = (question: string, of: string | undefined) => (of === undefined ? question : `${question} of ${of}`);
  process.on("message", async (message: ToProcess) => {
    if (message.kind === "answers") {
      asked.get(message.id)?.(message.answers);
      asked.delete(message.id);
    } else if (message.kind === "ask") {
      const answer = await answers
        .get(keyOf(message.question, message.of))?.()
        .catch(() => undefined);
      send({ kind: "answer", id: message.id, answer });
    }
  });
  const ask = (question: GroupQuestion, of: string | undefined) => {
    const { promise, resolve } = Promise.withResolvers<readonly GroupAnswer<GroupQuestion>[]>();
    asked.set(++lastId, resolve);
    send({ kind: "ask", id: lastId, question, of });
    return promise;
  };
  // Probes that arrive together share one question, so that many probes cannot load all processes.
  const inFlight = new Map<string, ReturnType<typeof ask>>();
  return {
    number,
    ask<Question extends GroupQuestion>(question: Question, of?: string) {
      const key = keyOf(question, of);
      const answers = inFlight.get(key) ?? ask(question, of).finally(() => inFlight.delete(key));
      inFlight.set(key, answers);
      return answers as Promise<readonly GroupAnswer<Question>[]>;
    },
    onQuestion: (question, answer, of) => void answers.set(keyOf(question, of), answer),
  };
}
