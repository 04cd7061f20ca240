/** Passes on the output of a process in whole lines, so that lines of several processes are never mixed. */
import type { Readable } from "node:stream";

// A longer line is passed on in parts, so that output without a line break cannot fill the memory.
const lineMax = 1024 * 1024;

export function passOnLines(from: Readable, write: (lines: string) => void): void {
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text: string) => {
    const end = text.lastIndexOf("\n") + 1;
    if (end > 0) {
      write(rest + text.slice(0, end));
      rest = text.slice(end);
    } else {
      rest += text;
    }
    if (rest.length < lineMax) return;
    write(`${rest}\n`);
    rest = "";
  });
  from.on("end", () => {
    if (rest !== "") write(`${rest}\n`);
  });
}
