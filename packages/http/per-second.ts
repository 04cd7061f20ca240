/** Writes at most so many lines a second, so that a flood of requests cannot become a flood of lines. */

export interface PerSecond<Event> {
  /** Events that are written one by one; the rest of the second becomes one line at its end. */
  readonly max: number;
  /** `count` is 1, or how many events this line stands for: then `event` is the newest of them. */
  readonly write: (event: Event, count: number) => void;
}

export function perSecond<Event>({ max, write }: PerSecond<Event>): (event: Event) => void {
  let written = 0;
  let held: { event: Event; count: number } | undefined;
  let isCounting = false;

  function writeNow(event: Event, count: number): void {
    written++;
    if (!isCounting) setTimeout(secondIsOver, 1_000).unref();
    isCounting = true;
    write(event, count);
  }

  function secondIsOver(): void {
    const rest = held;
    [written, held, isCounting] = [0, undefined, false];
    if (rest) writeNow(rest.event, rest.count);
  }

  return (event) => {
    if (written < max) writeNow(event, 1);
    else held = { event, count: (held?.count ?? 0) + 1 };
  };
}
