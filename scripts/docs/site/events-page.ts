/** The page of the events, from the AsyncAPI document. */

interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly const?: string;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly "x-protobuf-field"?: number;
}

interface Message {
  readonly summary: string;
  readonly payload: Schema;
  readonly "x-aggregate-key": string;
  readonly "x-protobuf-message": string;
  readonly examples: readonly { readonly headers: object; readonly payload: object }[];
}

export interface AsyncApi {
  readonly info: { readonly description: string };
  readonly channels: Readonly<
    Record<string, { readonly address: string; readonly description: string; readonly messages: object }>
  >;
  readonly operations: Readonly<
    Record<string, { readonly action: string; readonly channel: { readonly $ref: string }; readonly title: string }>
  >;
  readonly components: {
    readonly messages: Readonly<Record<string, Message>>;
    readonly schemas: { readonly EventHeaders: Schema };
  };
}

export function eventsMarkdown({ info, channels, operations, components }: AsyncApi): string {
  const parts = Object.entries(channels).map(([name, { address, description, messages }]) => {
    const used = Object.values(operations).filter(({ channel }) => channel.$ref === `#/channels/${name}`);
    const list = used.map(({ title }) => `- ${title}`).join("\n");
    const types = Object.keys(messages).map((type) => messageMarkdown(type, components.messages[type] as Message));
    return `## ${address}\n\n${description}\n\n${list}\n\n${types.join("\n\n")}`;
  });
  const headers = fieldTable(components.schemas.EventHeaders);
  return `# Events\n\n${info.description}\n\nThe same as an AsyncAPI 3 document: \`asyncapi.json\` beside this page, and \`/asyncapi.json\` of the gateway.\n\n## Headers\n\n${headers}\n\n${parts.join("\n\n")}\n`;
}

function messageMarkdown(type: string, message: Message): string {
  const example = JSON.stringify(message.examples[0]?.payload, null, 2);
  return [
    `### ${type}`,
    message.summary,
    `Aggregate key: \`${message["x-aggregate-key"]}\`. Message: \`${message["x-protobuf-message"]}\`.`,
    fieldTable(message.payload),
    `\`\`\`json\n${example}\n\`\`\``,
  ].join("\n\n");
}

/** The fields of a list follow it, with its name before theirs. */
function fieldTable(schema: Schema): string {
  const rows = rowsOf(schema, "");
  return ["| field | number | type | | meaning |", "|---|---|---|---|---|", ...rows].join("\n");
}

function rowsOf({ properties = {}, required = [] }: Schema, prefix: string): string[] {
  return Object.entries(properties).flatMap(([name, field]) => {
    const { type = "", format, description = "", items } = field;
    const cells = [
      `\`${prefix}${name}\``,
      field["x-protobuf-field"] ?? "",
      format ?? type,
      required.includes(name) ? "always" : "optional",
      description,
    ];
    return [`| ${cells.join(" | ")} |`, ...(items ? rowsOf(items, `${name}[].`) : [])];
  });
}
