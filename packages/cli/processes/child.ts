/** One of the processes, as the parent sees it. It is started again when it dies, later each time. */
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { CommandFailed } from "../errors.ts";
import { printError, styled } from "../output.ts";
import type { Asked } from "./group-questions.ts";
import { passOnLines } from "./lines.ts";
import type { FromProcess, ToProcess } from "./messages.ts";
import { Restarts } from "./restarts.ts";

type AskMessage = Extract<FromProcess, { kind: "ask" }>;

export interface ChildOptions {
  readonly start: Extract<ToProcess, { kind: "start" }>;
  writeLog(lines: string): void;
  /** A question of this process to all. */
  onAsk(question: AskMessage): Promise<Extract<ToProcess, { kind: "answers" }>>;
  onAnswer(from: Asked, answer: Extract<FromProcess, { kind: "answer" }>): void;
  onGone(gone: Asked): void;
  /** It cannot be started. */
  onFailure(error: CommandFailed): void;
}

export class Child {
  readonly #options: ChildOptions;
  readonly #firstReady = Promise.withResolvers<Readonly<Record<string, string>>>();
  #worker: Worker | undefined;
  #asked: Asked | undefined;
  #readyAt: number | undefined;
  readonly #restarts = new Restarts();
  #isStopping = false;
  #restart: NodeJS.Timeout | undefined;

  constructor(options: ChildOptions) {
    this.#options = options;
    this.#fork();
  }

  get number(): number {
    return this.#options.start.number;
  }

  /** The URLs of its services. */
  get ready(): Promise<Readonly<Record<string, string>>> {
    return this.#firstReady.promise;
  }

  /** Set while it is ready. */
  get asked(): Asked | undefined {
    return this.#asked;
  }

  kill(): void {
    this.#worker?.process.kill("SIGKILL");
  }

  /** Drains it. False if it did not stop in order. */
  async stop(): Promise<boolean> {
    this.#isStopping = true;
    clearTimeout(this.#restart);
    if (!this.#worker) return true;
    const closed = once(this.#worker.process, "close");
    this.#worker.process.kill("SIGTERM");
    const [code] = await closed;
    return code === 0;
  }

  #fork(): void {
    const worker = cluster.fork();
    const send = (message: ToProcess) => void (worker.isConnected() && worker.send(message, () => {}));
    const asked: Asked = { number: this.number, send };
    const { writeLog, onAnswer, onAsk } = this.#options;
    this.#worker = worker;
    const closeLost = rememberHandedOver(worker);
    if (worker.process.stdout) passOnLines(worker.process.stdout, writeLog);
    if (worker.process.stderr) passOnLines(worker.process.stderr, (lines) => printError(this.#named(lines)));
    worker.on("message", async (message: FromProcess) => {
      if (message.kind === "loaded") send(this.#options.start);
      else if (message.kind === "answer") onAnswer(asked, message);
      else if (message.kind === "ask") send(await onAsk(message));
      else this.#becomeReady(asked, message.urls);
    });
    worker.on("error", () => {}); // Its exit follows.
    worker.process.once("exit", closeLost);
    worker.process.once("close", (code, signal) => {
      this.#options.onGone(asked);
      this.#onClose(code === null ? `was killed by ${signal}` : `exited with code ${code}`);
    });
  }

  #becomeReady(asked: Asked, urls: Readonly<Record<string, string>>): void {
    this.#asked = asked;
    this.#readyAt = performance.now();
    this.#firstReady.resolve(urls);
  }

  #onClose(how: string): void {
    const readyForMs = this.#readyAt === undefined ? undefined : performance.now() - this.#readyAt;
    this.#worker = undefined;
    this.#asked = undefined;
    this.#readyAt = undefined;
    if (this.#isStopping) return;
    const decision = this.#restarts.onDeath(readyForMs);
    if ("failedStarts" in decision) {
      const often = decision.failedStarts > 1 ? `, ${decision.failedStarts} times in a row` : "";
      this.#options.onFailure(new CommandFailed(`Process ${this.number} ${how} before it was ready${often}.`));
      return;
    }
    const { delayMs } = decision;
    const mark = styled("yellow", "!", process.stderr);
    printError(`${mark} process ${this.number} ${how}. It starts again in ${delayMs / 1_000} s.`);
    this.#restart = setTimeout(() => this.#fork(), delayMs);
  }

  #named(lines: string): string {
    return lines.trimEnd().replace(/^/gm, `process ${this.number}: `);
  }
}

/** Node's own message that hands a connection to a process. */
interface HandOver {
  readonly act?: string;
  readonly key?: string;
}

/**
 * Node never closes a connection that it handed to a process that dies before it has taken it, and the client would wait
 * forever. It hands over the next of a listener only when the last is taken, so we remember the last of each listener. Returns
 * what closes them.
 */
function rememberHandedOver({ process: child }: Worker): () => void {
  const last = new Map<string, { close?(): void }>();
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (...args: unknown[]) => {
    const [{ act, key }, handle] = args as [HandOver, { close?(): void } | undefined];
    if (act === "newconn" && key !== undefined && handle) last.set(key, handle);
    return send(...args);
  };
  return () => last.forEach((handle) => void handle.close?.());
}
