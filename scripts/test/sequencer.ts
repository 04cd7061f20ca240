/**
 * The order in which test files start: the longest first, so that no core is idle at the end while another runs a long file.
 * `npm test` prints the slowest files; where one is missing here the run only takes longer.
 *
 * Files that share processes come after all that do not: Vitest ends a shared process when the next file is not for it, and
 * another one has to load the code again.
 */
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { root } from "./command.ts";

const slowestFirst = [
  "flows/killed-services.test.ts",
  "flows/killed-points.test.ts",
  "chaos/chaos.test.ts",
  "flows/killed-matchmaker.test.ts",
  "services/orders/workers/crashes.test.ts",
];

const rankOf = ({ moduleId }: TestSpecification): number => {
  const file = relative(root, moduleId);
  const index = slowestFirst.indexOf(file);
  if (index >= 0) return index;
  // Then what starts processes of its own, and at last what does not.
  return slowestFirst.length + (/^(flows|packages\/cli)\//.test(file) ? 0 : 1);
};

const isShared = ({ project }: TestSpecification): number => (project.config.isolate ? 0 : 1);

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => isShared(a) - isShared(b) || rankOf(a) - rankOf(b));
  }
}
