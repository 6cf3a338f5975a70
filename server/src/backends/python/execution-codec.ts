import { assert, InferenceError, inferenceCodes } from "../../base/index.ts";
import type { InferenceRequest, Outcome, ParameterValue } from "../../inference/index.ts";
import { noParameters } from "../../inference/index.ts";
import {
  countBytesElements,
  datatypeOfNumber,
  datatypes,
  elementCount,
  type Arena,
  type Block,
  type Tensor,
} from "../../tensor/index.ts";
import type { LentBlock, LentBlocks } from "./lent-blocks.ts";
import { MalformedRecord, type WireRequest, type WireResponse, type WireTensor } from "./wire.ts";

/** What turning requests into frames and frames into responses has to know of a model version. */
export interface ModelFacts {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly inputIndex: ReadonlyMap<string, number>;
  readonly outputIndex: ReadonlyMap<string, number>;
  readonly outputNames: readonly string[];
  readonly arena: Arena;
  /** Tensors up to this size travel in the frame: below it a copy costs less than a loan. */
  readonly inlineBytesMax: number;
}

const sequenceStart = 1;
const sequenceEnd = 2;

/** Collects what an execution lends while its requests are put into wire form. */
export class LoanCollector {
  readonly loans: LentBlock[] = [];
  readonly #facts: ModelFacts;
  readonly #lent: LentBlocks;
  readonly #executionId: number;

  constructor(facts: ModelFacts, lent: LentBlocks, executionId: number) {
    this.#facts = facts;
    this.#lent = lent;
    this.#executionId = executionId;
  }

  /** Throws UNAVAILABLE when the arena cannot take an input; the caller gives back what was lent before. */
  request(request: InferenceRequest): WireRequest {
    const { sequence } = request;
    return {
      requestId: request.id,
      parametersJson: request.parameters.size === 0 ? "" : printParameters(request.parameters),
      correlation: sequence === null ? 0n : sequence.id,
      flags: sequence === null ? 0 : (sequence.start ? sequenceStart : 0) | (sequence.end ? sequenceEnd : 0),
      timeoutUs: request.queueTimeoutUs,
      requested: request.requestedOutputs === null ? null : this.#requested(request.requestedOutputs),
      inputs: request.inputs.map((tensor) => this.#tensor(tensor)),
    };
  }

  #requested(names: readonly string[]): number[] {
    const indices: number[] = [];
    for (const name of names) {
      const index = this.#facts.outputIndex.get(name);
      if (index !== undefined) indices.push(index);
    }
    return indices;
  }

  #tensor(tensor: Tensor): WireTensor {
    const nameIndex = this.#facts.inputIndex.get(tensor.name);
    assert(nameIndex !== undefined, `input '${tensor.name}' was checked against the configuration`);
    const byteLength = tensor.data.byteLength;
    const datatype = datatypes[tensor.datatype].configNumber;
    const { shape } = tensor;
    if (byteLength <= this.#facts.inlineBytesMax)
      return { nameIndex, datatype, shape, place: null, byteOffset: 0, byteLength, data: tensor.data };
    const { block } = tensor;
    if (block !== null && block.arenaId === this.#facts.arena.id) {
      const byteOffset = tensor.data.byteOffset - block.bytes.byteOffset;
      return { nameIndex, datatype, shape, place: this.#placeOf(block), byteOffset, byteLength, data: null };
    }
    const copy = this.#facts.arena.allocate(byteLength);
    copy.bytes.set(tensor.data);
    const place = this.loans.push(this.#lent.lend(copy, this.#executionId, "input")) - 1;
    return { nameIndex, datatype, shape, place, byteOffset: 0, byteLength, data: null };
  }

  #placeOf(block: Block): number {
    const known = this.loans.findIndex((lent) => lent.block === block);
    if (known !== -1) return known;
    block.retain();
    return this.loans.push(this.#lent.lend(block, this.#executionId, "input")) - 1;
  }
}

function printParameters(parameters: ReadonlyMap<string, ParameterValue>): string {
  const parts: string[] = [];
  for (const [key, value] of parameters)
    parts.push(`${JSON.stringify(key)}:${typeof value === "bigint" ? String(value) : JSON.stringify(value)}`);
  return `{${parts.join(",")}}`;
}

/**
 * Checks what the worker says about one response and makes it an outcome. Throws MalformedRecord for what no honest worker sends; then no
 * reference was taken by this call.
 */
export function outcomeOf(response: WireResponse, facts: ModelFacts, find: (lentId: number) => LentBlock): Outcome {
  if (response.kind === "error") {
    const code = inferenceCodes[response.code];
    if (code === undefined) throw new MalformedRecord(`error code ${response.code}`);
    return new InferenceError(code, response.message);
  }
  const outputs = response.outputs.map((wire) => outputOf(wire, facts, find));
  const parameters = response.parametersJson === "" ? noParameters : readParameters(response.parametersJson);
  for (const output of outputs) output.block?.retain();
  return { modelName: facts.modelName, modelVersion: facts.modelVersion, outputs, parameters };
}

function outputOf(wire: WireTensor, facts: ModelFacts, find: (lentId: number) => LentBlock): Tensor {
  const name = facts.outputNames[wire.nameIndex];
  const datatype = datatypeOfNumber(wire.datatype);
  if (name === undefined || datatype === undefined)
    throw new MalformedRecord(`output ${wire.nameIndex} of datatype ${wire.datatype}`);
  let data = wire.data;
  let block: Block | null = null;
  if (data === null) {
    const lent = find(wire.place!);
    block = lent.block;
    if (wire.byteOffset + wire.byteLength > lent.byteLength) throw new MalformedRecord("a tensor beyond its block");
    data = block.bytes.subarray(wire.byteOffset, wire.byteOffset + wire.byteLength);
  }
  const elements = elementCount(wire.shape);
  const { byteSize } = datatypes[datatype];
  const consistent = byteSize > 0 ? elements * byteSize === wire.byteLength : countElements(data) === elements;
  if (!consistent) throw new MalformedRecord(`output '${name}' whose shape is not that of its bytes`);
  return { name, datatype, shape: wire.shape, data, block };
}

function countElements(data: Uint8Array): number {
  try {
    return countBytesElements(data);
  } catch (error) {
    if (error instanceof InferenceError) return -1;
    throw error;
  }
}

/** Model code gave them as bool, int or str; JSON keeps the three apart. */
function readParameters(json: string): ReadonlyMap<string, ParameterValue> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json, (_key, value: unknown, context?: { source?: string }) =>
      typeof value === "number" && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context!.source!) : value,
    );
  } catch {
    throw new MalformedRecord("response parameters that are no JSON");
  }
  const parameters = new Map<string, ParameterValue>();
  for (const [key, value] of Object.entries(parsed as Record<string, unknown>)) {
    if (!["string", "boolean", "bigint", "number"].includes(typeof value))
      throw new MalformedRecord(`response parameter '${key}'`);
    parameters.set(key, value as ParameterValue);
  }
  return parameters;
}
