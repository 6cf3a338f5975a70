import type { ServerResponse } from "node:http";
import { AwsError, type Logger } from "@galatea/base";
import type { MemberModel, OperationModel, ServiceModel } from "../spec/index.ts";
import { jsonType } from "./send-response.ts";
import { encodeEvent, encodeEventHeaders, eventStreamType } from "./event-stream.ts";
import { toJson } from "./json-protocol.ts";
import { StreamWriter } from "./stream-writer.ts";
import { shapeOf } from "./validate.ts";

/**
 * The member of an operation's output that is an event stream. The operation's handler returns an iterable for it, and
 * each event has one member.
 */
export interface EventMember {
  readonly name: string;
  /** Members by event type. */
  readonly events: Readonly<Record<string, MemberModel>>;
}

export function findEventMember(model: ServiceModel, { output }: OperationModel): EventMember | null {
  const shape = output === undefined ? null : shapeOf(model, output);
  if (shape?.type !== "structure") return null;
  for (const [name, member] of Object.entries(shape.members)) {
    const inner = shapeOf(model, member.shape);
    if (inner.type === "structure" && inner.eventstream === true) return { name, events: inner.members };
  }
  return null;
}

export interface EventsExchange {
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
  readonly model: ServiceModel;
  readonly logger: Logger;
}

/**
 * Sends an event stream, after AWS JSON's initial message. That message is empty, because no output has other members.
 * An AwsError becomes an exception event if the stream's model has its code. Any other failure becomes an error event,
 * which ends the stream.
 */
export async function sendEvents(
  { response, signal, model, logger }: EventsExchange,
  { events }: EventMember,
  source: AsyncIterable<object>,
): Promise<void> {
  const contentType = jsonType(model);
  const message = (kind: string, type: string, document: unknown) => {
    const headers = encodeEventHeaders([
      [":message-type", kind],
      [kind === "exception" ? ":exception-type" : ":event-type", type],
      [":content-type", contentType],
    ]);
    return encodeEvent(headers, Buffer.from(JSON.stringify(document)));
  };
  response.writeHead(200, { "Content-Type": eventStreamType });
  const writer = new StreamWriter(response, signal);
  try {
    await writer.write(message("event", "initial-response", {}));
    for await (const event of source) {
      for (const [type, value] of Object.entries(event)) {
        const member = events[type];
        if (member !== undefined) await writer.write(message("event", type, toJson(model, member, value)));
      }
    }
  } catch (thrown) {
    if (signal.aborted) return;
    if (thrown instanceof AwsError && Object.hasOwn(events, thrown.code)) {
      response.write(message("exception", thrown.code, { message: thrown.message }));
    } else {
      logger.error("an event stream failed", { error: thrown instanceof Error ? thrown.stack : String(thrown) });
      response.write(encodeEvent(internalFailure, new Uint8Array()));
    }
  }
  writer.end();
}

const internalFailure = encodeEventHeaders([
  [":message-type", "error"],
  [":error-code", "InternalFailure"],
  [":error-message", "The stream failed; the server's log has the details."],
]);
