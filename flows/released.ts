/** The packages of the last release (fixtures/released), unpacked into a folder that finds the repository's other dependencies. */
import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

export interface Released extends Disposable {
  /** node_modules/@todoke of the release. */
  readonly packages: string;
  readonly version: string;
}

export function unpackReleased(): Released {
  const files = globSync("fixtures/released/todoke-*.tgz", { cwd: root });
  const version = /todoke-(.+)\.tgz$/.exec(files[0] ?? "")?.[1];
  if (version === undefined || files.length !== 1)
    throw new Error(`fixtures/released has ${files.length} releases, not 1`);
  // Inside the repository: Node looks for other packages in the folders above.
  const parent = join(root, ".todoke/released");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, `${version}-`));
  execFileSync("tar", ["-xzf", join(root, files[0] ?? ""), "-C", folder]);
  return {
    packages: join(folder, "node_modules/@todoke"),
    version,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
