/** The counter and the span of a service's commands, prefixed with its name ("account.command.total"). */
import { counter, createMeters, inSpan, type Metric, reportResults } from "@todoke/kernel/telemetry";

/** A literal name, so that the catalogue of the service is typed. */
type CommandCatalogue<Service extends string> = Readonly<
  Record<`${Service}.command.total`, Metric & { readonly kind: "counter" }>
>;

export function commandMetrics<Service extends string>(service: Service) {
  const catalogue = {
    [`${service}.command.total`]: counter(
      "{command}",
      "Commands by result: applied, replayed, conflict, refused (a retry cannot succeed), unknown (the COMMIT was lost), failed",
      ["action", "result"],
    ),
  } as CommandCatalogue<Service>; // TypeScript widens computed names to string.
  const { count } = createMeters<CommandCatalogue<string>>(`@todoke/${service}`, catalogue);
  /** One command, from submission to commit; child of the request, parent of the publish. */
  const spanName = `${service} command`;
  return {
    /** Spread it into the catalogue of the service. */
    catalogue,
    spanName,
    /** The same command, in a span and with its results counted. */
    countCommands<Request, Response extends object>(action: string, command: (request: Request) => Promise<Response>) {
      const counted = reportResults(command, (result) => count(`${service}.command.total`, { action, result }));
      return (request: Request) => inSpan(spanName, { action }, () => counted(request));
    },
  };
}
