import type { YieldOptions } from "@galatea/base";
import type { InferenceResponse, ParameterValue } from "../../inference/index.ts";
import { JsonDataPrinter, JsonSink, type Datatype, type Tensor } from "../../tensor/index.ts";
import { classify } from "./classification.ts";
import { printInChunks } from "./in-chunks.ts";
import type { RequestedOutput } from "./infer-header.ts";

export interface EncodeOptions {
  readonly id: string;
  readonly outputs: readonly RequestedOutput[] | null;
  readonly binaryOutputs: boolean;
  /** Returns the labels of an output; called only for the classification extension. */
  readonly outputLabels: (outputName: string) => readonly string[];
  readonly batches: () => boolean;
}

/**
 * An encoded response body. `json` is latin1 text (each character is one byte of UTF-8) or chunks of it. `tails` are the binary outputs in
 * the order of the JSON's `outputs`; null if no output is binary. The tails refer to the response's tensors, so the response must be
 * released only after they were sent.
 */
export interface EncodedResponse {
  readonly json: string | readonly Buffer[];
  readonly jsonBytes: number;
  readonly tails: readonly Uint8Array[] | null;
}

/** Maximum length of an element's text, comma included, for each byte of the tensor. For strings, it is the usual length instead. */
const textBytesPerByte: Readonly<Record<Datatype, number>> = {
  BOOL: 6,
  UINT8: 4,
  UINT16: 3,
  UINT32: 3,
  UINT64: 3,
  INT8: 5,
  INT16: 4,
  INT32: 3,
  INT64: 3,
  FP16: 0,
  FP32: 6,
  FP64: 4,
  BYTES: 2,
  BF16: 0,
};

/** Returns an approximate upper bound of the length of a response's JSON text. */
export function jsonTextBytesMax(
  response: InferenceResponse,
  options: Pick<EncodeOptions, "outputs" | "binaryOutputs">,
) {
  let bytes = 0;
  for (const { name, datatype, data } of response.outputs) {
    const requestedOutput = options.outputs?.find((candidate) => candidate.name === name);
    if (!(requestedOutput?.binary ?? options.binaryOutputs)) bytes += data.length * textBytesPerByte[datatype];
  }
  return bytes;
}

export function printParameter(sink: JsonSink, value: ParameterValue): void {
  if (typeof value === "string") sink.string(value);
  else if (typeof value === "number") sink.double(value);
  else sink.ascii(String(value));
}

/** Maximum number of idle sinks for long texts that are kept for reuse; each uses 0.3 MB. */
const idleSinksMax = 4;

/** Encodes responses. One sink serves all responses that the thread encodes in one step. Throws for outputs that JSON cannot represent. */
export class ResponseEncoder {
  readonly #sink = new JsonSink();
  readonly #idleSinks: JsonSink[] = [];

  encode(response: InferenceResponse, options: EncodeOptions): EncodedResponse {
    const sink = this.#sink;
    try {
      const printing = new ResponsePrinting(sink, response, options);
      for (const output of response.outputs) {
        const data = printing.output(output);
        if (data === null) continue;
        data.advance(Infinity);
        printing.endOutput();
      }
      return printing.end();
    } catch (error) {
      sink.reset();
      throw error;
    }
  }

  /** Encodes a long response in chunks. Its tensors must not change until it is complete. */
  async encodeInChunks(
    response: InferenceResponse,
    options: EncodeOptions,
    yieldOptions: YieldOptions,
  ): Promise<EncodedResponse> {
    const sink = this.#idleSinks.pop() ?? new JsonSink();
    try {
      const printing = new ResponsePrinting(sink, response, options);
      for (const output of response.outputs) {
        const data = printing.output(output);
        if (data === null) continue;
        await printInChunks(yieldOptions, data);
        printing.endOutput();
      }
      return printing.end();
    } finally {
      sink.reset();
      if (this.#idleSinks.length < idleSinksMax) this.#idleSinks.push(sink);
    }
  }
}

/** Prints the JSON of one response: the beginning, each output, the end. */
class ResponsePrinting {
  readonly #sink: JsonSink;
  readonly #options: EncodeOptions;
  #tails: Uint8Array[] | null = null;
  #isFirst = true;

  constructor(sink: JsonSink, response: InferenceResponse, options: EncodeOptions) {
    this.#sink = sink;
    this.#options = options;
    sink.byte(0x7b);
    if (options.id !== "") {
      sink.ascii('"id":');
      sink.string(options.id);
      sink.byte(0x2c);
    }
    sink.ascii('"model_name":');
    sink.string(response.modelName);
    sink.ascii(',"model_version":');
    sink.string(response.modelVersion);
    if (response.parameters.size > 0) this.#parameters(response.parameters);
    sink.ascii(',"outputs":[');
  }

  /** Begins an output. Returns the printer of its elements; null for a binary output. */
  output(tensor: Tensor): JsonDataPrinter | null {
    const sink = this.#sink;
    const options = this.#options;
    const requestedOutput = options.outputs?.find((candidate) => candidate.name === tensor.name);
    const output =
      requestedOutput === undefined || requestedOutput.classCount === 0
        ? tensor
        : classify(tensor, requestedOutput.classCount, options.batches(), options.outputLabels(tensor.name));
    if (!this.#isFirst) sink.byte(0x2c);
    this.#isFirst = false;
    this.#describe(output);
    if (requestedOutput?.binary ?? options.binaryOutputs) {
      (this.#tails ??= []).push(output.data);
      sink.ascii(',"parameters":{"binary_data_size":');
      sink.integer(output.data.length);
      sink.ascii("}}");
      return null;
    }
    sink.ascii(',"data":');
    return new JsonDataPrinter(sink, output);
  }

  endOutput(): void {
    this.#sink.byte(0x7d);
  }

  end(): EncodedResponse {
    const sink = this.#sink;
    sink.ascii("]}");
    const jsonBytes = sink.byteLength;
    return { json: sink.take(), jsonBytes, tails: this.#tails };
  }

  #parameters(parameters: InferenceResponse["parameters"]): void {
    const sink = this.#sink;
    sink.ascii(',"parameters":{');
    let first = true;
    for (const [name, value] of parameters) {
      if (!first) sink.byte(0x2c);
      first = false;
      sink.string(name);
      sink.byte(0x3a);
      printParameter(sink, value);
    }
    sink.byte(0x7d);
  }

  #describe(output: Tensor): void {
    const sink = this.#sink;
    sink.ascii('{"name":');
    sink.string(output.name);
    sink.ascii(',"datatype":"');
    sink.ascii(output.datatype);
    sink.ascii('","shape":[');
    const { shape } = output;
    for (let i = 0; i < shape.length; i++) {
      if (i > 0) sink.byte(0x2c);
      sink.integer(shape[i]!);
    }
    sink.byte(0x5d);
  }
}
