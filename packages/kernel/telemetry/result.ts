/** The `result` label of a command, the same in every service. */
import { CommitUnknown } from "../db/index.ts";
import { Problem } from "../problem/index.ts";

/** The same command, with the result of every call reported. */
export const reportResults =
  <Args extends unknown[], Response extends object>(
    command: (...args: Args) => Promise<Response>,
    report: (result: "applied" | "replayed" | ReturnType<typeof toResultLabel>) => void,
  ) =>
  async (...args: Args): Promise<Response> => {
    try {
      const response = await command(...args);
      report("replayed" in response && response.replayed ? "replayed" : "applied");
      return response;
    } catch (error) {
      report(toResultLabel(error));
      throw error;
    }
  };

/** refused: a permanent refusal. conflict: 409 or 412. unknown: the COMMIT was lost. failed: an error on our side. */
function toResultLabel(error: unknown): "conflict" | "failed" | "refused" | "unknown" {
  if (error instanceof CommitUnknown) return "unknown";
  if (!(error instanceof Problem)) return "failed";
  if (error.status === 409 || error.status === 412) return "conflict";
  return error.status < 500 ? "refused" : "failed";
}
