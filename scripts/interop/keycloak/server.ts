/** A Keycloak on a free loopback port, with the realm of deploy/keycloak and a database in its own folder. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { root } from "../../test/command.ts";
import { addSigningKey } from "./admin.ts";

export interface KeycloakOptions {
  /** Where the distribution is. */
  readonly home: string;
  readonly port: number;
  /** Where browsers and Keycloak reach the gateway. */
  readonly origin: string;
}

const startWithinMs = 180_000;

export class Keycloak implements AsyncDisposable {
  readonly clientSecret = randomBytes(24).toString("base64url");
  readonly #password = randomBytes(16).toString("hex");
  readonly #options: KeycloakOptions;
  #process: ChildProcess | undefined;
  #output = "";

  constructor(options: KeycloakOptions) {
    this.#options = options;
    process.once("exit", () => this.#process?.kill());
  }

  get url(): string {
    return `http://localhost:${this.#options.port}`;
  }

  get issuer(): string {
    return `${this.url}/realms/todoke`;
  }

  /** The realm file, with the gateway's addresses as docs/guides/let-players-in.md says. */
  async prepare(): Promise<void> {
    const { home, origin } = this.#options;
    const realm = await readFile(join(root, "deploy/keycloak/realm-todoke.json"), "utf8");
    const data = join(home, "data");
    await rm(data, { recursive: true, force: true });
    await mkdir(join(data, "import"), { recursive: true });
    const adapted = realm.replaceAll("http://localhost:8080", origin);
    await writeFile(join(data, "import/realm-todoke.json"), adapted);
  }

  async start(): Promise<void> {
    const { home, port, origin } = this.#options;
    const listen = ["--http-host=127.0.0.1", `--http-port=${port}`, `--hostname=${this.url}`];
    this.#process = spawn(join(home, "bin/kc.sh"), ["start-dev", "--import-realm", ...listen], {
      env: {
        ...process.env,
        OIDC_CLIENT_SECRET: this.clientSecret,
        GATEWAY_BFF_BACK_CHANNEL: origin,
        KC_BOOTSTRAP_ADMIN_USERNAME: "keycloak",
        KC_BOOTSTRAP_ADMIN_PASSWORD: this.#password,
        JAVA_OPTS_KC_HEAP: "-Xms64m -Xmx768m",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#output = "";
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output = (this.#output + text).slice(-20_000);
      });
    await this.#isReady();
  }

  async #isReady(): Promise<void> {
    const deadline = Date.now() + startWithinMs;
    const responds = () =>
      fetch(`${this.issuer}/.well-known/openid-configuration`).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!(await responds())) {
      if (this.#process?.exitCode !== null) throw new Error(`Keycloak did not start:\n${this.#output}`);
      if (Date.now() > deadline) throw new Error(`Keycloak was not ready in ${startWithinMs} ms:\n${this.#output}`);
      await delay(200);
    }
  }

  async stop(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    running.kill("SIGTERM");
    await once(running, "exit");
  }

  rotateKeys(): Promise<void> {
    return addSigningKey(this.url, { username: "keycloak", password: this.#password });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
