import { readToBuffer, type YieldOptions } from "@galatea/base";
import { filterRow, filterRows } from "./data-processing.ts";
import type { ObjectSource } from "./object-source.ts";
import { PayloadPacker, type PackedRecord, type Payload } from "./payload-packer.ts";
import { openSplitter } from "./record-splitter.ts";
import type { SourceRecord } from "./split-record.ts";
import { transformClientError } from "./transform-error.ts";
import type { RequestShape, TransformPlan } from "./transform-request.ts";

/** Maximum bytes of a record in a job without a payload limit. */
export const recordBytesMaxDefault = 100 * 2 ** 20;

/** Yields the payloads of an object, in order. Only one payload and the beginning of the next are in memory. */
export async function* objectPayloads(
  { body }: ObjectSource,
  plan: TransformPlan,
  { strategy, payloadBytesMax }: RequestShape,
  of: YieldOptions,
): AsyncGenerator<Payload> {
  const bytesMax = payloadBytesMax ?? recordBytesMaxDefault;
  const { splitType } = plan;
  if (splitType === "None") {
    yield await wholePayload(body, plan, { bytesMax, of });
    return;
  }
  const splitter = openSplitter(splitType, bytesMax);
  const packer = new PayloadPacker(strategy, bytesMax);
  for await (const chunk of body as AsyncIterable<Buffer>) {
    for (const record of splitter.push(chunk)) {
      const full = packer.push(packed(record, plan));
      if (full !== null) yield full;
    }
  }
  for (const record of splitter.end()) {
    const full = packer.push(packed(record, plan));
    if (full !== null) yield full;
  }
  const left = packer.end();
  if (left !== null) yield left;
}

function packed({ framed, content }: SourceRecord, { processing }: TransformPlan): PackedRecord {
  if (processing === null) return { alone: content, together: framed, original: null };
  const sent = filterRow(content, processing);
  // Rows of a response are split at line feeds, so rows of a request end with a line feed, too.
  return { alone: sent, together: appendLineEnd(sent), original: processing.joinsInput ? content : null };
}

async function wholePayload(
  body: ObjectSource["body"],
  { processing }: TransformPlan,
  { bytesMax, of }: { readonly bytesMax: number; readonly of: YieldOptions },
): Promise<Payload> {
  const tooLong = () => transformClientError(`the object is longer than the ${bytesMax} bytes of MaxPayloadInMB`);
  const complete = await readToBuffer(body, bytesMax, tooLong);
  if (processing === null) return { body: complete, recordCount: 1, originals: null };
  const { format, joinsInput } = processing;
  const originals = joinsInput ? complete : null;
  if (format === "json") return { body: filterRow(complete, processing), recordCount: 1, originals };
  return { ...(await filterRows(complete, processing, of)), originals };
}

export function appendLineEnd(text: Buffer): Buffer {
  return text.at(-1) === 0x0a ? text : Buffer.concat([text, Buffer.from("\n")]);
}
