import { assert, InferenceError, inferenceCodes } from "@galatea/base";
import type { InferenceRequest, Outcome, ParameterValue } from "../../inference/index.ts";
import { noParameters } from "../../inference/index.ts";
import {
  countBytesElements,
  datatypeFromNumber,
  datatypes,
  elementCount,
  type Arena,
  type Block,
  type Tensor,
} from "../../tensor/index.ts";
import { frameLimits } from "./frame-limits.ts";
import type { LentBlock, LentBlocks } from "./lent-blocks.ts";
import { readFlatObject, type MemberBudget } from "./untrusted-json.ts";
import {
  MalformedRecord,
  sequenceEnd,
  sequenceStart,
  type WireRequest,
  type WireResponse,
  type WireTensor,
} from "./wire.ts";

/** Properties of a model version that are needed to encode its requests and decode its responses. */
export interface FrameContext {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly inputIndex: ReadonlyMap<string, number>;
  readonly outputIndex: ReadonlyMap<string, number>;
  readonly outputNames: readonly string[];
  /** True if the model is decoupled: it sends any number of responses to a request, each in its own frame. */
  readonly isDecoupled: boolean;
  readonly arena: Arena;
  /** Tensors up to this size are copied into the frame, which costs less than lending their blocks. */
  readonly inlineBytesMax: number;
}

/** Collects the blocks that are lent to an execution while its requests are encoded. */
export class LoanCollector {
  readonly loans: LentBlock[] = [];
  /** Index of each block in `loans`. Created with the first entry, because most executions lend no blocks. */
  #indexes: Map<Block, number> | null = null;
  readonly #context: FrameContext;
  readonly #lent: LentBlocks;
  readonly #executionId: number;

  constructor(context: FrameContext, lent: LentBlocks, executionId: number) {
    this.#context = context;
    this.#lent = lent;
    this.#executionId = executionId;
  }

  /** Encodes a request. Throws UNAVAILABLE if the arena has no memory for an input; the caller then revokes the blocks lent so far. */
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
      const index = this.#context.outputIndex.get(name);
      if (index !== undefined) indices.push(index);
    }
    return indices;
  }

  #tensor(tensor: Tensor): WireTensor {
    const nameIndex = this.#context.inputIndex.get(tensor.name);
    assert(nameIndex !== undefined, `input '${tensor.name}' was checked against the configuration`);
    const byteLength = tensor.data.byteLength;
    const datatype = datatypes[tensor.datatype].configNumber;
    const { shape } = tensor;
    if (byteLength <= this.#context.inlineBytesMax)
      return { nameIndex, datatype, shape, blockRef: null, byteOffset: 0, byteLength, data: tensor.data };
    const { block } = tensor;
    if (block !== null && block.arenaId === this.#context.arena.id) {
      const byteOffset = tensor.data.byteOffset - block.bytes.byteOffset;
      return { nameIndex, datatype, shape, blockRef: this.#indexOf(block), byteOffset, byteLength, data: null };
    }
    const copy = this.#context.arena.allocate(byteLength);
    copy.bytes.set(tensor.data);
    const index = this.loans.push(this.#lent.lend(copy, this.#executionId, "input")) - 1;
    return { nameIndex, datatype, shape, blockRef: index, byteOffset: 0, byteLength, data: null };
  }

  #indexOf(block: Block): number {
    const known = this.#indexes?.get(block);
    if (known !== undefined) return known;
    // Each tensor has its own reference, so a block with two tensors of this batch counts as shared.
    const isShared = block.referenceCount > 1;
    block.retain();
    const index = this.loans.push(this.#lent.lend(block, this.#executionId, "input", isShared)) - 1;
    this.#indexes ??= new Map();
    this.#indexes.set(block, index);
    return index;
  }
}

export function printParameters(parameters: ReadonlyMap<string, ParameterValue>): string {
  const segments: string[] = [];
  for (const [key, value] of parameters) segments.push(`${JSON.stringify(key)}:${printParameter(value)}`);
  return `{${segments.join(",")}}`;
}

/**
 * Prints a parameter as JSON. A double is printed with a decimal point (`1.0`, not `1`), so that Python reads a float. Numbers that are not
 * finite are printed as Python's json module prints them.
 */
function printParameter(value: ParameterValue): string {
  if (typeof value !== "number") return typeof value === "bigint" ? String(value) : JSON.stringify(value);
  const text = Object.is(value, -0) ? "-0" : String(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

const noBlocks: ReadonlySet<LentBlock> = new Set();

/** The state of decoding one RESULT or RESPONSE frame: the blocks that the responses may use, and the remaining limits. */
export class ResultDecoder {
  readonly parameters: MemberBudget = { left: frameLimits.parameterMembersMax };
  readonly #released: readonly number[];
  readonly #find: (lentId: number) => LentBlock;
  /** Created when needed, because most results contain all of their data in the frame. */
  #releasedIds: ReadonlySet<number> | null = null;
  #usedSpaces: Set<LentBlock> | null = null;
  #found: Set<LentBlock> | null = null;
  #elementBytesLeft: number = frameLimits.elementBytesMax;

  constructor(released: readonly number[], find: (lentId: number) => LentBlock) {
    this.#released = released;
    this.#find = find;
  }

  /** Lent blocks that contain outputs. */
  get usedSpaces(): Iterable<LentBlock> & { readonly size: number } {
    return this.#usedSpaces ?? noBlocks;
  }

  find(lentId: number): LentBlock {
    const lent = this.#find(lentId);
    if (lent.use === "space") (this.#usedSpaces ??= new Set()).add(lent);
    // A block that the model can still write to must not become an output.
    else if (!lent.isShared && !(this.#releasedIds ??= new Set(this.#released)).has(lentId))
      throw new MalformedRecord(`a tensor in block ${lentId}, which is not released`);
    this.#found ??= new Set();
    if (!this.#found.has(lent)) this.#elementBytesLeft += 4 * lent.byteLength;
    this.#found.add(lent);
    return lent;
  }

  /** Counts bytes that are scanned for the lengths of string elements. Without a limit, many outputs could refer to the same bytes. */
  looksThrough(byteLength: number): void {
    this.#elementBytesLeft -= byteLength;
    if (this.#elementBytesLeft < 0) throw new MalformedRecord("outputs that refer to the same elements too often");
  }
}

/**
 * Checks a worker's response and converts it to an outcome. Throws MalformedRecord for a response that a correct worker never sends; no
 * reference to a block is taken then.
 */
export function toOutcome(response: WireResponse, context: FrameContext, reading: ResultDecoder): Outcome {
  if (response.kind === "error") {
    const code = inferenceCodes[response.code];
    if (code === undefined) throw new MalformedRecord(`error code ${response.code}`);
    return new InferenceError(code, response.message);
  }
  const outputs = response.outputs.map((wire) => outputOf(wire, context, reading));
  const parameters =
    response.parametersJson === "" ? noParameters : readFlatObject(response.parametersJson, reading.parameters);
  for (const output of outputs) output.block?.retain();
  return { modelName: context.modelName, modelVersion: context.modelVersion, outputs, parameters };
}

function outputOf(wire: WireTensor, context: FrameContext, reading: ResultDecoder): Tensor {
  const name = context.outputNames[wire.nameIndex];
  const datatype = datatypeFromNumber(wire.datatype);
  if (name === undefined || datatype === undefined)
    throw new MalformedRecord(`output ${wire.nameIndex} of datatype ${wire.datatype}`);
  let data = wire.data;
  let block: Block | null = null;
  if (data === null) {
    const lent = reading.find(wire.blockRef!);
    block = lent.block;
    if (wire.byteOffset + wire.byteLength > lent.byteLength) throw new MalformedRecord("a tensor outside its block");
    data = block.bytes.subarray(wire.byteOffset, wire.byteOffset + wire.byteLength);
  }
  const elements = elementCount(wire.shape);
  const { byteSize } = datatypes[datatype];
  if (byteSize === 0) reading.looksThrough(wire.byteLength);
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
