const RealDate = Date;

/** Shifts `Date`; a second call replaces the first. Timers are not affected, as with a wrong system clock. */
export function skewClock(byMs: number): void {
  class SkewedDate extends RealDate {
    constructor(...given: readonly number[]) {
      super(...((given.length === 0 ? [RealDate.now() + byMs] : given) as [number]));
    }
    static override now(): number {
      return RealDate.now() + byMs;
    }
  }
  globalThis.Date = SkewedDate as DateConstructor;
}
