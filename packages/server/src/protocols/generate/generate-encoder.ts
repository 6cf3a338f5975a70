import type { YieldOptions } from "@galatea/base";
import type { InferenceResponse, ParameterValue } from "../../inference/index.ts";
import { elementCount, JsonDataPrinter, JsonSink, type Tensor } from "../../tensor/index.ts";
import { printInChunks, printParameter } from "../infer-codec/index.ts";

/** The text of a response in latin1 (each character is one byte of UTF-8), or chunks of it. */
export type ResponseText = string | readonly Buffer[];

/** Prints responses as flat JSON objects. One sink serves all responses of a thread. */
export class GenerateEncoder {
  readonly #sink = new JsonSink();

  /** Prints a response at once. Throws for outputs that JSON cannot represent. */
  encode(response: InferenceResponse, id: string, form: ResponseFormat): PrintedText {
    const sink = this.#sink;
    try {
      for (const tensor of printed(sink, membersOf(response, id), form)) tensor.advance(Infinity);
    } catch (error) {
      sink.reset();
      throw error;
    }
    return taken(sink);
  }

  /** Prints a long response in chunks. Its tensors must not change until it is complete. */
  async encodeInChunks(
    response: InferenceResponse,
    id: string,
    form: ResponseFormat,
    of: YieldOptions,
  ): Promise<PrintedText> {
    const sink = new JsonSink();
    for (const tensor of printed(sink, membersOf(response, id), form)) await printInChunks(of, tensor);
    return taken(sink);
  }
}

/** A plain JSON object, or a server-sent event that contains one. */
export type ResponseFormat = "object" | "event";

interface PrintedText {
  readonly text: ResponseText;
  readonly textBytes: number;
}

function taken(sink: JsonSink): PrintedText {
  const textBytes = sink.byteLength;
  return { text: sink.take(), textBytes };
}

/**
 * Prints everything except the elements of tensors. Yields a printer for each tensor. The caller must run the printer to its end before it
 * continues this generator.
 */
function* printed(
  sink: JsonSink,
  members: ReadonlyMap<string, Tensor | ParameterValue>,
  form: ResponseFormat,
): Generator<JsonDataPrinter, void, undefined> {
  if (form === "event") sink.ascii("data: ");
  let separator = 0x7b;
  for (const [name, value] of sortedByBytes(members)) {
    sink.byte(separator);
    separator = 0x2c;
    sink.string(name);
    sink.byte(0x3a);
    // A single element is printed without brackets, whatever the shape of its tensor is.
    if (typeof value === "object") yield new JsonDataPrinter(sink, value, elementCount(value.shape) === 1 ? "" : "[]");
    else printParameter(sink, value);
  }
  sink.byte(0x7d);
  if (form === "event") sink.ascii("\n\n");
}

/**
 * Returns the members of the object. If names are equal, a field of the protocol takes precedence over an output, and an output over a
 * parameter.
 */
function membersOf(response: InferenceResponse, id: string): ReadonlyMap<string, Tensor | ParameterValue> {
  const members = new Map<string, Tensor | ParameterValue>([
    ["model_name", response.modelName],
    ["model_version", response.modelVersion],
  ]);
  if (id !== "") members.set("id", id);
  for (const output of response.outputs) if (!members.has(output.name)) members.set(output.name, output);
  for (const [name, value] of response.parameters) if (!members.has(name)) members.set(name, value);
  return members;
}

/** Returns the members sorted by the bytes of their names, as Triton's map does. */
function sortedByBytes<Value>(members: ReadonlyMap<string, Value>): [string, Value][] {
  return [...members].sort(([left], [right]) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
}
