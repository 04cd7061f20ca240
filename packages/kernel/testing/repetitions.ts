/** How often a test repeats something random or made up. `npm run test:quick` repeats it a twentieth as often as `npm test`. */
export function repetitions(full: number): number {
  return process.env.TODOKE_TEST_QUICK === "true" ? Math.ceil(full / 20) : full;
}
