import { isUtf8 } from "node:buffer";
import type { CaptureSettings } from "./capture-settings.ts";

/** The copied body of a request or a response, as it is written to a capture file. */
export interface CapturedBody {
  readonly contentType: string | null;
  readonly pieces: readonly Buffer[];
}

/** The captured data of one request and its response. `input` and `output` are null if the settings exclude them. */
export interface CapturedCall {
  readonly eventId: string;
  readonly inferenceId: string | null;
  readonly customAttributes: string | null;
  readonly timeMs: number;
  readonly input: CapturedBody | null;
  readonly output: CapturedBody | null;
}

export type CaptureTypes = Pick<CaptureSettings, "csvTypes" | "jsonTypes">;

/** Bytes that are encoded in one step. Divisible by three, because base64 encodes three bytes as four characters. */
const stepBytesMax = 3 * 2 ** 14;

/** The media type for a body without a content type (RFC 9110). */
const contentTypeUnsaid = "application/octet-stream";

/** Yields the JSON line of a captured call, including the line end, in short chunks. */
export function* captureLine(call: CapturedCall, types: CaptureTypes): Generator<string> {
  const { input, output, inferenceId, customAttributes } = call;
  yield '{"captureData":{';
  if (input !== null) yield* sideText("endpointInput", "INPUT", input, types);
  if (input !== null && output !== null) yield ",";
  if (output !== null) yield* sideText("endpointOutput", "OUTPUT", output, types);
  const metadata = {
    eventId: call.eventId,
    ...(customAttributes === null ? {} : { customAttributes: [customAttributes] }),
    ...(inferenceId === null ? {} : { inferenceId }),
    inferenceTime: `${new Date(call.timeMs).toISOString().slice(0, 19)}Z`,
  };
  yield `},"eventMetadata":${JSON.stringify(metadata)},"eventVersion":"0"}\n`;
}

function* sideText(name: string, mode: string, body: CapturedBody, types: CaptureTypes): Generator<string> {
  const encoding = encodingOf(body, types);
  const type = JSON.stringify(body.contentType ?? contentTypeUnsaid);
  yield `"${name}":{"observedContentType":${type},"mode":"${mode}","data":"`;
  yield* encoding === "BASE64" ? base64Text(body.pieces) : plainText(body.pieces);
  yield `","encoding":"${encoding}"}`;
}

/**
 * Returns the encoding of a body by its media type; parameters of the type are ignored. A body that is not valid text
 * is encoded as base64, whatever its type.
 */
function encodingOf({ contentType, pieces }: CapturedBody, types: CaptureTypes): "CSV" | "JSON" | "BASE64" {
  const [media = ""] = (contentType ?? "").split(";");
  const type = media.trim().toLowerCase();
  const named = types.csvTypes.has(type) ? "CSV" : types.jsonTypes.has(type) ? "JSON" : "BASE64";
  return named !== "BASE64" && !isText(pieces) ? "BASE64" : named;
}

function isText(chunks: readonly Buffer[]): boolean {
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return isUtf8(only);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for (const chunk of chunks) decoder.decode(chunk, { stream: true });
    decoder.decode();
    return true;
  } catch {
    return false;
  }
}

function* plainText(chunks: readonly Buffer[]): Generator<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for (const step of steps(chunks)) yield JSON.stringify(decoder.decode(step, { stream: true })).slice(1, -1);
}

function* base64Text(chunks: readonly Buffer[]): Generator<string> {
  let left: Buffer = Buffer.alloc(0);
  for (const step of steps(chunks)) {
    const bytes = left.length === 0 ? step : Buffer.concat([left, step]);
    const wholeBytes = bytes.length - (bytes.length % 3);
    yield bytes.toString("base64", 0, wholeBytes);
    left = bytes.subarray(wholeBytes);
  }
  yield left.toString("base64");
}

function* steps(chunks: readonly Buffer[]): Generator<Buffer> {
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += stepBytesMax) yield chunk.subarray(at, at + stepBytesMax);
  }
}
