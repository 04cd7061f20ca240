/** For tests: speaks to a server byte by byte, as no client library would. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { until } from "@todoke/kernel/testing";

export class RawConnection implements AsyncDisposable {
  readonly #socket: Socket;
  #received = "";

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      this.#received += text;
    });
    socket.on("error", () => {}); // A reset is an end like any other; what was received before it is what counts.
  }

  static async open(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, "connect");
    return new RawConnection(socket);
  }

  send(text: string | Uint8Array): void {
    this.#socket.write(text);
  }

  get received(): string {
    return this.#received;
  }

  get closed(): boolean {
    return this.#socket.closed;
  }

  /** The status codes of all answers so far. */
  get statuses(): number[] {
    return [...this.#received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  }

  /** All that came, once the server has closed the connection. */
  async untilClosed(): Promise<string> {
    await until("the server closes the connection", () => this.closed);
    return this.#received;
  }

  async untilAnswers(count: number): Promise<string> {
    await until(`${count} answers have come`, () => this.statuses.length >= count);
    return this.#received;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
  }
}

/** A POST of JSON, on one connection that is kept. */
export function post(path: string, body: unknown, headers: Record<string, string> = {}): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const all = {
    host: "test",
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${text}`;
}
