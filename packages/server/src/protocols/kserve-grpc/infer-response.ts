import type { InferenceResponse, ParameterValue } from "../../inference/index.ts";
import { classify } from "../infer-codec/index.ts";
import { ProtobufWriter } from "./protobuf-writer.ts";

export interface MessageOptions {
  readonly id: string;
  readonly classCounts: ReadonlyMap<string, number>;
  /** Returns the labels of an output; called only for the classification extension. */
  readonly outputLabels: (outputName: string) => readonly string[];
  readonly batches: () => boolean;
}

/**
 * Encodes responses as protobuf. Raw outputs refer to the response's tensors, so the response must be released only after they were sent.
 */
export class ResponseWriter {
  readonly #writer = new ProtobufWriter();

  /** Encodes a ModelInferResponse as a list of consecutive chunks. */
  response(response: InferenceResponse, options: MessageOptions): Uint8Array[] {
    const writer = this.#writer;
    writer.reset();
    writer.string(1, response.modelName);
    writer.string(2, response.modelVersion);
    writer.string(3, options.id);
    for (const [name, value] of response.parameters) this.#parameter(name, value);
    const contents: Uint8Array[] = [];
    for (const tensor of response.outputs) {
      const classCount = options.classCounts.get(tensor.name);
      const output =
        classCount === undefined
          ? tensor
          : classify(tensor, classCount, options.batches(), options.outputLabels(tensor.name));
      const start = writer.begin(5);
      writer.string(1, output.name);
      writer.string(2, output.datatype);
      writer.packed(3, output.shape);
      writer.end(start);
      contents.push(output.data);
    }
    const chunks: Uint8Array[] = [];
    let from = 0;
    for (const data of contents) {
      writer.delimited(6, data.byteLength);
      chunks.push(writer.take(from), data);
      from = writer.byteLength;
    }
    if (contents.length === 0) chunks.push(writer.take(0));
    return chunks;
  }

  /** Encodes a ModelStreamInferResponse that contains a response. */
  inStream(chunks: readonly Uint8Array[]): Uint8Array[] {
    let byteLength = 0;
    for (const chunk of chunks) byteLength += chunk.byteLength;
    const writer = this.#writer;
    writer.reset();
    writer.delimited(2, byteLength);
    return [writer.take(0), ...chunks];
  }

  /** Encodes a ModelStreamInferResponse that contains an error; the id identifies the request. */
  errorInStream(message: string, response: InferenceResponse, id: string): Uint8Array[] {
    const inner = this.response(response, noClasses(id));
    const writer = this.#writer;
    writer.reset();
    writer.string(1, message);
    const head = writer.take(0);
    return [head, ...this.inStream(inner)];
  }

  #parameter(name: string, value: ParameterValue): void {
    const writer = this.#writer;
    const entry = writer.begin(4);
    writer.string(1, name);
    const inner = writer.begin(2);
    if (typeof value === "boolean") writer.bool(1, value);
    else if (typeof value === "bigint") writer.integer(2, value);
    else if (typeof value === "number") writer.double(4, value);
    else if (value === "") writer.delimited(3, 0);
    else writer.string(3, value);
    writer.end(inner);
    writer.end(entry);
  }
}

function noClasses(id: string): MessageOptions {
  return { id, classCounts: new Map(), outputLabels: () => [], batches: () => false };
}
