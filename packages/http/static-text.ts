/**
 * A large text that never changes while the process runs. Its path has its hash, so that browsers can cache it forever, and it
 * is compressed once, at the first request.
 */
import { hash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";

type Encoding = "br" | "gzip";

const compress: Readonly<Record<Encoding, (text: string) => Promise<Buffer>>> = {
  // 11, the default, takes seconds for a megabyte.
  br: (text) => promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: promisify(gzip),
};

export class StaticText {
  /** The beginning of its SHA-256, for its path. */
  readonly hash: string;
  readonly #text: string;
  readonly #type: string;
  readonly #compressed: Partial<Record<Encoding, Promise<Buffer>>> = {};

  constructor(text: string, type: string) {
    this.hash = hash("sha256", text, "hex").slice(0, 16);
    this.#text = text;
    this.#type = type;
  }

  async send(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const etag = `"${this.hash}"`;
    reply.headers({ "cache-control": "public, max-age=31536000, immutable", vary: "accept-encoding", etag });
    if (request.headers["if-none-match"] === etag) return reply.code(304).send();
    reply.type(this.#type);
    const encoding = (["br", "gzip"] as const).find((each) => accepts(request, each));
    if (!encoding) return reply.send(this.#text);
    this.#compressed[encoding] ??= compress[encoding](this.#text);
    return reply.header("content-encoding", encoding).send(await this.#compressed[encoding]);
  }
}

/** Weights are ignored, except 0, which rejects an encoding. */
function accepts({ headers }: FastifyRequest, encoding: Encoding): boolean {
  const named = String(headers["accept-encoding"] ?? "")
    .split(",")
    .map((each) =>
      each
        .trim()
        .toLowerCase()
        .split(/\s*;\s*/),
    );
  return named.some(([name, weight]) => name === encoding && !/^q=0(\.0*)?$/.test(weight ?? ""));
}
