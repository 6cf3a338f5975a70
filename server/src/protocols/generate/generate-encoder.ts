import type { InferenceResponse, ParameterValue } from "../../inference/index.ts";
import { elementCount, JsonSink, printJsonElements, type Tensor } from "../../tensor/index.ts";
import { printParameter } from "../infer-codec/index.ts";

/** An answer's text: latin1 (each character is one byte of UTF-8), or pieces of it. */
export type AnswerText = string | readonly Buffer[];

/** Prints answers as flat objects; one sink serves all answers of a thread. */
export class GenerateEncoder {
  readonly #sink = new JsonSink();

  /** Throws for outputs that JSON cannot hold. */
  encode(response: InferenceResponse, id: string, form: "object" | "event"): { text: AnswerText; textBytes: number } {
    const sink = this.#sink;
    try {
      if (form === "event") sink.ascii("data: ");
      this.#object(membersOf(response, id));
      if (form === "event") sink.ascii("\n\n");
    } catch (error) {
      sink.reset();
      throw error;
    }
    const textBytes = sink.byteLength;
    return { text: sink.take(), textBytes };
  }

  #object(members: ReadonlyMap<string, Tensor | ParameterValue>): void {
    const sink = this.#sink;
    let separator = 0x7b;
    for (const [name, value] of sortedByBytes(members)) {
      sink.byte(separator);
      separator = 0x2c;
      sink.string(name);
      sink.byte(0x3a);
      if (typeof value === "object") this.#tensor(value);
      else printParameter(sink, value);
    }
    sink.byte(0x7d);
  }

  /** One element stands for itself, whatever the shape says around it. */
  #tensor({ datatype, shape, data }: Tensor): void {
    const isElement = elementCount(shape) === 1;
    if (!isElement) this.#sink.byte(0x5b);
    printJsonElements(this.#sink, datatype, data);
    if (!isElement) this.#sink.byte(0x5d);
  }
}

/** What the protocol says of the model comes before an output of the same name, and an output before a parameter. */
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

/** Triton's order of members: its map's, of bytes. */
function sortedByBytes<Value>(members: ReadonlyMap<string, Value>): [string, Value][] {
  return [...members].sort(([left], [right]) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
}
