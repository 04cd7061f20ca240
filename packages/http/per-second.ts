/** Limits log lines per second, so that a flood of requests does not become a flood of lines. */

export interface PerSecond<Event> {
  /** Lines per second; the other events of the second share one line at its end. */
  readonly max: number;
  /** `count` is the number of events that this line stands for; `event` is the newest of them. */
  readonly write: (event: Event, count: number) => void;
}

export function perSecond<Event>({ max, write }: PerSecond<Event>): (event: Event) => void {
  let written = 0;
  let pending: { event: Event; count: number } | undefined;
  let isCounting = false;

  function writeNow(event: Event, count: number): void {
    written++;
    if (!isCounting) setTimeout(onSecond, 1_000).unref();
    isCounting = true;
    write(event, count);
  }

  function onSecond(): void {
    const rest = pending;
    [written, pending, isCounting] = [0, undefined, false];
    if (rest) writeNow(rest.event, rest.count);
  }

  return (event) => {
    if (written < max) writeNow(event, 1);
    else pending = { event, count: (pending?.count ?? 0) + 1 };
  };
}
