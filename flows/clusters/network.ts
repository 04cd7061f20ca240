/**
 * Hosts in network namespaces, joined by a bridge. The caller must run in a namespace of its own (`unshare --net`): then everything
 * that is made here is gone when its processes are, also after a kill -9. Needs root, and iproute2, iptables and util-linux of Debian.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import type { EngineHost } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";

const execute = promisify(execFile);
const subnet = "10.71.0";

export class Host implements EngineHost {
  readonly address: string;
  readonly enter: readonly string[];
  /** The end of its cable at the bridge. */
  readonly #port: string;

  constructor(n: number, pid: number) {
    this.address = `${subnet}.${n + 1}`;
    this.enter = ["nsenter", `--net=/proc/${pid}/ns/net`];
    this.#port = `port${n}`;
  }

  /** Connects it to the bridge. */
  async connect(pid: number): Promise<void> {
    await ip(`link add ${this.#port} type veth peer name eth0 netns ${pid}`);
    await ip(`link set ${this.#port} master bridge0 up`);
    for (const command of ["link set lo up", `addr add ${this.address}/24 dev eth0`, "link set eth0 up"])
      await this.#run(`ip ${command}`);
  }

  /** No packet reaches it or leaves it; its processes go on. */
  cutOff(): Promise<void> {
    return ip(`link set ${this.#port} down`);
  }

  heal(): Promise<void> {
    return ip(`link set ${this.#port} up`);
  }

  /** So many kilobits a second, in each direction. Packets that wait for longer than 0.4 s are dropped. */
  async slow(kbit: number): Promise<void> {
    const limit = `root tbf rate ${kbit}kbit burst 16kb latency 400ms`;
    await execute("tc", `qdisc add dev ${this.#port} ${limit}`.split(" "));
    await this.#run(`tc qdisc add dev eth0 ${limit}`);
  }

  async unslow(): Promise<void> {
    await execute("tc", ["qdisc", "del", "dev", this.#port, "root"]);
    await this.#run("tc qdisc del dev eth0 root");
  }

  /** The share of packets that is dropped, in each direction. */
  async lose(share: number): Promise<void> {
    const drop = `-i eth0 -m statistic --mode random --probability ${share} -j DROP`;
    await this.#run(`iptables -A INPUT ${drop}`);
    await this.#run(`iptables -A OUTPUT ${drop.replace("-i", "-o")}`);
  }

  async loseNone(): Promise<void> {
    await this.#run("iptables -F");
  }

  async #run(command: string): Promise<void> {
    const [program = "", ...args] = [...this.enter, ...command.split(" ")];
    await execute(program, args);
  }
}

async function ip(command: string): Promise<void> {
  await execute("ip", command.split(" "));
}

/** This process reaches all hosts, and they reach each other. */
export async function openHosts(count: number): Promise<{ readonly hosts: readonly Host[] } & AsyncDisposable> {
  await ip("link set lo up");
  await ip("link add bridge0 type bridge");
  await ip(`addr add ${subnet}.1/24 dev bridge0`);
  await ip("link set bridge0 up");
  await using parts = new AsyncDisposableStack();
  const hosts: Host[] = [];
  for (let n = 1; n <= count; n++) {
    const pid = await holdNamespace(parts);
    const host = new Host(n, pid);
    await host.connect(pid);
    hosts.push(host);
  }
  const all = parts.move();
  return { hosts, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** A process that does nothing in a namespace of its own, and ends with this one. */
async function holdNamespace(parts: AsyncDisposableStack): Promise<number> {
  const args = ["--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"];
  const holder: ChildProcess = spawn("setpriv", args, { stdio: "ignore" });
  parts.defer(async () => {
    const exited = once(holder, "exit");
    holder.kill("SIGKILL");
    await exited;
  });
  const { pid = 0 } = holder;
  const namespace = async (of: string) => (await execute("readlink", [`/proc/${of}/ns/net`])).stdout;
  const own = await namespace("self");
  await until("the namespace exists", async () => (await namespace(String(pid))) !== own);
  return pid;
}
