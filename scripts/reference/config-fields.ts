import { ScalarType, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { configLimits } from "../../packages/server/src/modelconfig/check-limits.ts";
import { ModelConfigSchema } from "../../packages/server/src/modelconfig/message.ts";
import { unsupportedFeatures } from "../../packages/server/src/modelconfig/unsupported-features.ts";
import { codeSpan, markdownTable, referencePage } from "./markdown.ts";

/** Returns the page of the fields of config.pbtxt, from the schema that it is parsed with and the table of what is rejected. */
export function configFieldsPage(): string {
  const rejected = unsupportedFeatures.map(({ field, when }) => [codeSpan(field), when ?? "if it is set"]);
  const limits = Object.entries(configLimits).map(([name, most]) => [wordsOf(name), String(most)]);
  return referencePage(
    "Fields of config.pbtxt",
    "The fields are those of Triton's `model_config.proto`. A field that is not in the schema is an error, with its line. A model that uses a field of the first table is not loaded; the error names the field.",
    [
      `## Rejected fields\n\n${markdownTable(["field", "rejected"], rejected)}`,
      `## Limits\n\n${markdownTable(["of a model", "at most"], limits)}`,
      ...[...messagesFrom(ModelConfigSchema)].map(messageSection),
    ],
  );
}

/** Returns a message and the messages of its fields, each once. */
function messagesFrom(message: DescMessage, found = new Set<DescMessage>()): ReadonlySet<DescMessage> {
  if (found.has(message)) return found;
  found.add(message);
  for (const { message: inner } of message.fields) if (inner !== undefined) messagesFrom(inner, found);
  return found;
}

function messageSection(message: DescMessage): string {
  const rows = message.fields.map((field) => [codeSpan(field.name), typeOf(field), choiceOf(field)]);
  return `## ${nameOf(message)}\n\n${markdownTable(["field", "type", "one of"], rows)}`;
}

function choiceOf({ oneof }: DescField): string {
  return oneof === undefined ? "" : oneof.fields.map(({ name }) => codeSpan(name)).join(", ");
}

function typeOf(field: DescField): string {
  const inner = field.enum === undefined ? null : field.enum.values.map(({ name }) => codeSpan(name)).join(", ");
  const type = inner ?? (field.message === undefined ? scalarOf(field) : linkTo(field.message));
  if (field.fieldKind === "list") return `list of ${type}`;
  return field.fieldKind === "map" ? `map from ${ScalarType[field.mapKey].toLowerCase()} to ${type}` : type;
}

function scalarOf(field: DescField): string {
  return field.scalar === undefined ? "" : ScalarType[field.scalar].toLowerCase();
}

const nameOf = ({ typeName }: DescMessage) => typeName.replace(/^inference\./, "");
const linkTo = (message: DescMessage) => `[${nameOf(message)}](#${nameOf(message).toLowerCase().replaceAll(".", "")})`;

const wordsOf = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
