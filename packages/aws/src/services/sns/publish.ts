import { invalidParameter, type MessageAttribute, type Topics } from "../../topics/index.ts";
import type { SnsInputs } from "../../spec/gen/sns.ts";
import type { SnsRows } from "./rows.ts";

/** Maximum size of the message and its attributes together, in bytes. */
const messageBytesMax = 262_144;
const subjectCharsMax = 100;

export function publishOperation(topics: Topics) {
  return {
    Publish: {
      resource: (input) => input.TopicArn ?? input.TargetArn ?? "*",
      unsupportedMembers: [{ path: "PhoneNumber" }, { path: "MessageGroupId" }, { path: "MessageDeduplicationId" }],
      async handle(input) {
        const topicArn = input.TopicArn ?? input.TargetArn;
        if (topicArn === undefined)
          throw invalidParameter("TopicArn or TargetArn Reason: no value for required parameter");
        topics.topic(topicArn);
        const subject = input.Subject ?? null;
        if (subject !== null && (subject.length > subjectCharsMax || !/^[\x21-\x7e][\x20-\x7e]*$/.test(subject))) {
          throw invalidParameter("Subject");
        }
        const attributes = attributesOf(input.MessageAttributes ?? {});
        const text = textOf(input);
        const bytes = Buffer.byteLength(text) + Buffer.byteLength(JSON.stringify(attributes)) - 2;
        if (bytes > messageBytesMax) throw invalidParameter("Message too long");
        return { MessageId: await topics.publish({ topicArn, subject, text, attributes }) };
      },
    },
  } satisfies Partial<SnsRows>;
}

/**
 * Returns the text for HTTP subscriptions. With a message structure, this is its entry for HTTP, or else its default
 * entry.
 */
function textOf({ Message: message, MessageStructure: structure }: SnsInputs["PublishInput"]): string {
  if (message === "") throw invalidParameter("Empty message");
  if (structure === undefined) return message;
  if (structure !== "json") throw invalidParameter("MessageStructure Reason: invalid value");
  let parsed: unknown;
  try {
    parsed = JSON.parse(message);
  } catch {
    throw invalidParameter("Message Structure - JSON message body failed to parse");
  }
  const texts = parsed as Readonly<Record<string, unknown>> | null;
  const text = texts?.["http"] ?? texts?.["default"];
  if (typeof texts?.["default"] !== "string" || typeof text !== "string") {
    throw invalidParameter("Message Structure - No default entry in JSON message body");
  }
  return text;
}

function attributesOf(
  inputs: Readonly<Record<string, SnsInputs["MessageAttributeValue"]>>,
): Readonly<Record<string, MessageAttribute>> {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, { DataType: type, StringValue: text, BinaryValue: bytes }]) => {
      if (!/^(String|String\.Array|Number|Binary)(\.[\w.-]+)?$/.test(type)) {
        throw invalidParameter(`The message attribute '${name.slice(0, 64)}' has an invalid message attribute type`);
      }
      const value = text ?? (bytes === undefined ? undefined : Buffer.from(bytes).toString("base64"));
      if (value === undefined || value === "") {
        throw invalidParameter(
          `The message attribute '${name.slice(0, 64)}' must contain non-empty message attribute value`,
        );
      }
      return [name, { Type: type, Value: value }];
    }),
  );
}
