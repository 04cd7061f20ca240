/** A clock that is wrong. */

/** Only what the program sees of the time: timers go on as they are, as with a clock that was set wrong. */
export function skewClock(byMs: number): void {
  const RealDate = Date;
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
