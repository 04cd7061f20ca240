/** Reads images, ports and secrets of a compose file, line by line, in the form that our files have. */
export interface Compose {
  readonly images: readonly string[];
  readonly ports: readonly string[];
  /** Values of variables with a secret name. */
  readonly secrets: readonly string[];
}

export function readCompose(yaml: string): Compose {
  const lines = yaml.split("\n").filter((line) => !line.startsWith("#"));
  const valuesOf = (form: RegExp) => lines.flatMap((line) => form.exec(line)?.[1] ?? []);
  return {
    images: valuesOf(/^ {4}image: (.+)$/),
    ports: portsIn(lines),
    secrets: valuesOf(/^ {6}\w*(?:PASSWORD|SECRET|KEY|TOKEN)\w*: (.+)$/),
  };
}

function portsIn(lines: readonly string[]): string[] {
  let inPorts = false;
  return lines.flatMap((line) => {
    const port = inPorts ? /^ {6}- (.+)$/.exec(line)?.[1] : undefined;
    inPorts = line === "    ports:" || port !== undefined;
    return port === undefined ? [] : [port];
  });
}
