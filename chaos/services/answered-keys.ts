/** Recently accepted keys, for work items that reuse command: as another caller, or with another body. */

import type { Command } from "../history.ts";
import type { Random } from "../random.ts";

const keysMax = 20;

export interface AnsweredKeys {
  readonly isEmpty: boolean;
  /** Each key is reused once only, because a second reuse would conflict with the first. */
  take(): Command;
  onAccepted(command: Command): void;
}

export function answeredKeys(random: Random): AnsweredKeys {
  const answered: Command[] = [];
  return {
    get isEmpty() {
      return answered.length === 0;
    },
    take() {
      const [taken] = answered.splice(random.between(0, answered.length - 1), 1);
      return taken as Command;
    },
    onAccepted(command) {
      if (command.key !== `key-${command.id}`) return; // It reused a key itself.
      answered.push(command);
      if (answered.length > keysMax) answered.shift();
    },
  };
}
