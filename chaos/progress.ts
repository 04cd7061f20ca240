/** How a run goes, while it goes: one line that is written over on a terminal, a line now and then elsewhere. */
import type { Progress } from "./run.ts";

const everyMs = 10_000;

export interface Telling {
  tell(progress: Progress): void;
  end(): void;
}

export function tellProgress(name: string, forMs: number, out: NodeJS.WriteStream = process.stdout): Telling {
  let toldAt = -everyMs;
  let phase = "";
  return {
    tell(progress) {
      const { elapsedMs, commands, faults, arrived, unknown, lastFault } = progress;
      const time = `${(elapsedMs / 1_000).toFixed(0)} of about ${(forMs / 1_000 + 15).toFixed(0)} s`;
      const counts = `${commands} commands, ${unknown} unknown, ${faults} faults, ${arrived} webhooks`;
      const line = `${name}: ${progress.phase}, ${time}; ${counts}; ${lastFault}`;
      if (out.isTTY) {
        out.write(`\r\u001b[2K${line.slice(0, (out.columns ?? 120) - 1)}`);
        return;
      }
      if (phase === progress.phase && elapsedMs - toldAt < everyMs) return;
      [phase, toldAt] = [progress.phase, elapsedMs];
      out.write(`${line}\n`);
    },
    end: () => void (out.isTTY && out.write("\n")),
  };
}
