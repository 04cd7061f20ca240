/**
 * The bytes of one message as they are made: just as much of the Protocol Buffers wire format as our events use.
 *
 * One scratch buffer serves all messages, because encoding is synchronous and ends in a copy. It is as large as an
 * event may be, so it never grows; past that `room` says so.
 */

/** An event says what happened, it does not carry the goods. Far below what every broker takes (NATS: 1 MB). */
export const eventBytesMax = 65_536;

const scratch = Buffer.alloc(eventBytesMax);
let end = 0;

export function begin(): void {
  end = 0;
}

export function finish(): Uint8Array {
  return new Uint8Array(scratch.subarray(0, end));
}

/** Whether `length` more bytes fit. Ask before writing: a Buffer drops what lies past its end without a word. */
export function room(length: number): boolean {
  return end + length <= eventBytesMax;
}

/** A whole number from 0 to 2^53 - 1, seven bits to the byte, lowest first. */
export function writeVarint(value: number): void {
  let rest = value;
  // Shifts are quick but see 32 bits only.
  while (rest > 0x7fffffff) {
    scratch[end++] = (rest % 128) | 0x80;
    rest = Math.floor(rest / 128);
  }
  while (rest > 0x7f) {
    scratch[end++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  scratch[end++] = rest;
}

/** Any int64. A negative one is its two's complement, ten bytes long. */
export function writeInt64(value: bigint): void {
  let rest = BigInt.asUintN(64, value);
  while (rest > 0x7fn) {
    scratch[end++] = Number(rest & 0x7fn) | 0x80;
    rest >>= 7n;
  }
  scratch[end++] = Number(rest);
}

/** A text whose length in UTF-8 is known. */
export function writeText(value: string, byteLength: number): void {
  writeVarint(byteLength);
  end += scratch.write(value, end, byteLength);
}

/**
 * Whatever `write` writes, with its length before it. The length has one byte, as for all that is shorter than 128; what
 * is longer moves on to make room, by `nestedExtraBytesMax` at the most.
 */
export function writeNested(write: () => void): void {
  const start = end++;
  write();
  const length = end - start - 1;
  if (length < 0x80) {
    scratch[start] = length;
    return;
  }
  const extra = length < 0x4000 ? 1 : nestedExtraBytesMax;
  scratch.copyWithin(start + 1 + extra, start + 1, end);
  end = start;
  writeVarint(length);
  end += length;
}

/** The longest length is that of a whole event: three bytes. */
const nestedExtraBytesMax = 2;
