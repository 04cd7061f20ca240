/** Keys that were answered with success of late, for wishes that use one again: as another caller, or with another body. */

import type { Command } from "../history.ts";
import type { Random } from "../random.ts";

const most = 20;

export interface AnsweredKeys {
  readonly isEmpty: boolean;
  /** A key is used again once only: the second use elsewhere would be the first one's conflict. */
  take(): Command;
  heard(one: Command): void;
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
    heard(one) {
      if (one.key !== `key-${one.id}`) return; // It has used another's already.
      answered.push(one);
      if (answered.length > most) answered.shift();
    },
  };
}
