/** Reads the body of a fetch response up to a maximum size. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
}

/** Leaving the loop early closes the connection, so the rest is never received. */
export async function readBounded(
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new TooLargeError(`the response is longer than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
