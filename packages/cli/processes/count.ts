/** How many processes a command runs: `--processes auto`, or a number. */
import { availableParallelism, totalmem } from "node:os";
import { UsageError } from "../errors.ts";

const countMax = 256;
/** A process with all services takes about 300 MB at rest; the rest is for requests. */
const bytesPerProcess = 512 * 1024 ** 2;

export function readProcessCount(value: string | undefined): number {
  if (value === undefined) return 1;
  if (value === "auto") return countThatFit(availableParallelism(), memoryBytes());
  const count = Number(value);
  if (/^\d+$/.test(value) && count >= 1 && count <= countMax) return count;
  throw new UsageError(`--processes is "${value}" and should be auto or a number from 1 to ${countMax}.`);
}

/** One for each core, if the memory suffices. */
export const countThatFit = (cores: number, bytes: number): number =>
  Math.max(1, Math.min(countMax, cores, Math.floor(bytes / bytesPerProcess)));

/** That of the container, if it has a limit. Node reports none as 0, or as more than there is. */
const memoryBytes = (): number => Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
