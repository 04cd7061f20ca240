/**
 * A change of source text, made while a file is loaded and nowhere else. What production runs has no switches: a
 * failpoint or a defect exists only in a process that was started with ./instrument.ts before it.
 *
 * A patch finds its place by the text around it, exactly once, or it is an error: code that was rewritten must not
 * disarm a patch in silence.
 */
export interface Patch {
  /** From the root of the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** The text with the patches of its file made, one after the other. */
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
