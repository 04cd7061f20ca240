/**
 * A change of source text that is applied while a file is loaded, only in a process that was started with ./instrument.ts.
 * Production code has no switches.
 *
 * The text to replace must occur exactly once; otherwise it is an error, so that a rewrite of the code cannot disable a patch
 * silently.
 */
export interface Patch {
  /** From the root of the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** Applies the patches of a file in order. */
export function patched(file: string, source: string, patches: readonly Patch[]): string {
  return patches.filter((patch) => patch.file === file).reduce(patchedOnce, source);
}

function patchedOnce(source: string, { file, find, replace }: Patch): string {
  const parts = source.split(find);
  if (parts.length === 2) return parts.join(replace);
  throw new Error(
    `${file} has ${parts.length - 1} places that read ${JSON.stringify(find)} and a patch needs exactly one: ` +
      "the code has changed, so change the patch with it (chaos/patches)",
  );
}
