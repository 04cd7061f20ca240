/** Shows the progress of a run: one line that is overwritten on a terminal, a line every 10 s elsewhere. */
import type { Progress } from "./run.ts";

const intervalMs = 10_000;

export interface ProgressOutput {
  show(progress: Progress): void;
  end(): void;
}

export function showProgress(name: string, forMs: number, out: NodeJS.WriteStream = process.stdout): ProgressOutput {
  let shownAt = -intervalMs;
  let phase = "";
  return {
    show(progress) {
      const { elapsedMs, commands, faults, arrived, unknown, lastFault } = progress;
      const time = `${(elapsedMs / 1_000).toFixed(0)} of about ${(forMs / 1_000 + 15).toFixed(0)} s`;
      const counts = `${commands} commands, ${unknown} unknown, ${faults} faults, ${arrived} webhooks`;
      const line = `${name}: ${progress.phase}, ${time}; ${counts}; ${lastFault}`;
      if (out.isTTY) {
        out.write(`\r\u001b[2K${line.slice(0, (out.columns ?? 120) - 1)}`);
        return;
      }
      if (phase === progress.phase && elapsedMs - shownAt < intervalMs) return;
      [phase, shownAt] = [progress.phase, elapsedMs];
      out.write(`${line}\n`);
    },
    end: () => void (out.isTTY && out.write("\n")),
  };
}
