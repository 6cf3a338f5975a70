import { assert, InferenceError } from "../base/index.ts";
import { addressOf, checkStatus, copyFrom, copyTo, made, type OrtApi, readText, takeError } from "./onnxruntime-api.ts";
import type { RunValues } from "./run-threads.ts";

/** An input or output as the model file declares it. */
export interface OnnxValueInfo {
  readonly name: string;
  /** ONNXType: 1 for a tensor; sequences, maps and optionals cannot be fed or taken. */
  readonly onnxType: number;
  /** ONNXTensorElementDataType; 0 for what is no tensor. */
  readonly elementType: number;
  /** -1 where the size is open; [] for a scalar. */
  readonly dims: readonly number[];
  /** The name of each open size, "" where it has none or the size is fixed. Equal names mean equal sizes. */
  readonly symbols: readonly string[];
}

/** ONNXTensorElementDataType of strings, whose elements are objects and not bytes. */
export const onnxStringType = 8;

export interface OnnxInput {
  /** Place among the session's inputs. */
  readonly index: number;
  readonly shape: readonly number[];
  /** Packed elements (read in place: aligned to the element and unchanged until the run settles), or one view per string. */
  readonly data: Uint8Array | readonly Uint8Array[];
}

export interface OnnxOutput {
  readonly index: number;
  /** Where the elements shall be written, with their shape; null lets the library allocate. Not for strings. */
  readonly target: { readonly shape: readonly number[]; readonly data: Uint8Array } | null;
}

/** What a run gave for one wanted output: bytes lie in the given target or in what `place` returned. */
export type OnnxResult =
  | { readonly kind: "tensor"; readonly shape: readonly number[]; readonly elementType: number }
  | { readonly kind: "strings"; readonly shape: readonly number[]; readonly elements: readonly Uint8Array[] };

export interface OnnxRun {
  readonly inputs: readonly OnnxInput[];
  readonly outputs: readonly OnnxOutput[];
  /** Memory for an output that the library allocated; called once the size is known. */
  readonly place: (output: number, shape: readonly number[], byteLength: number) => Uint8Array;
}

/** Bytes of an element by ONNXTensorElementDataType; strings and what we do not carry are absent. */
const elementBytes: ReadonlyMap<number, number> = new Map([
  [1, 4],
  [2, 1],
  [3, 1],
  [4, 2],
  [5, 2],
  [6, 4],
  [7, 8],
  [9, 1],
  [10, 2],
  [11, 8],
  [12, 4],
  [13, 8],
  [16, 2],
]);

/** The call's arguments, kept between runs: addresses of names, and handles of values. */
interface Frame {
  readonly inputNames: BigUint64Array;
  readonly inputValues: BigUint64Array;
  readonly outputNames: BigUint64Array;
  readonly outputValues: BigUint64Array;
  /** Where the four begin, in this order. */
  readonly addresses: readonly [bigint, bigint, bigint, bigint];
  readonly shape: BigInt64Array;
  readonly runOptions: bigint;
}

const rankMax = 64;

export interface SessionParts {
  readonly api: OrtApi;
  readonly session: bigint;
  readonly cpuMemory: bigint;
  /** The library's default allocator, for strings. */
  readonly allocator: bigint;
  readonly runConfig: ReadonlyMap<string, string>;
  /** Calls the library's `Run` off the event loop; resolves to its status, 0 for success. */
  readonly callRun: (values: RunValues) => Promise<bigint>;
}

/** Runs of one loaded model. `close` must wait for the last run; whoever admits runs sees to that. */
export class SessionRuns {
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly #parts: SessionParts;
  readonly #inputNames: readonly Buffer[];
  readonly #outputNames: readonly Buffer[];
  /** Frames nobody uses; as many as there were runs at once. */
  readonly #frames: Frame[] = [];
  /** What the library reads and writes during its calls: a reference for as long as each takes. */
  readonly #held = new Set<OnnxRun>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.inputs = describe(parts, "Input");
    this.outputs = describe(parts, "Output");
    this.#inputNames = this.inputs.map((input) => Buffer.from(`${input.name}\0`));
    this.#outputNames = this.outputs.map((output) => Buffer.from(`${output.name}\0`));
  }

  /** Rejects with ONNX Runtime's words (INTERNAL), or CANCELLED when the signal ended the run. */
  async run(run: OnnxRun, signal: AbortSignal | null): Promise<readonly OnnxResult[]> {
    const { api } = this.#parts;
    const frame = this.#frames.pop() ?? this.#makeFrame();
    this.#held.add(run);
    let inputCount = 0;
    try {
      for (const input of run.inputs) {
        frame.inputValues[inputCount] = this.#inputValue(frame, input);
        frame.inputNames[inputCount] = addressOf(this.#inputNames[input.index] as Buffer);
        inputCount += 1;
      }
      for (const [place, output] of run.outputs.entries()) {
        const type = this.outputs[output.index]?.elementType ?? 0;
        frame.outputNames[place] = addressOf(this.#outputNames[output.index] as Buffer);
        frame.outputValues[place] =
          output.target === null ? 0n : this.#tensorOver(frame, type, output.target.shape, output.target.data);
      }
      await this.#call(frame, run, signal);
      return run.outputs.map((output, place) => this.#result(frame.outputValues[place] as bigint, output, run.place));
    } finally {
      releaseAll(api, frame.inputValues);
      releaseAll(api, frame.outputValues);
      this.#held.delete(run);
      this.#frames.push(frame);
    }
  }

  close(): void {
    assert(this.#held.size === 0, "an ONNX Runtime session is closed while it runs");
    const { api, session } = this.#parts;
    for (const frame of this.#frames) api.releaseRunOptions(frame.runOptions);
    this.#frames.length = 0;
    api.releaseSession(session);
  }

  async #call(frame: Frame, run: OnnxRun, signal: AbortSignal | null): Promise<void> {
    const { api, session, callRun } = this.#parts;
    const [inputNames, inputs, outputNames, outputs] = frame.addresses;
    const onAbort = () => checkStatus(api, api.runOptionsSetTerminate(frame.runOptions));
    if (signal?.aborted) throw cancelled();
    signal?.addEventListener("abort", onAbort, { once: true });
    let status: bigint;
    try {
      // `frame` is a local of the caller and `run` is in #held: both outlive the call.
      status = await callRun([
        session,
        frame.runOptions,
        inputNames,
        inputs,
        run.inputs.length,
        outputNames,
        run.outputs.length,
        outputs,
      ]);
    } finally {
      signal?.removeEventListener("abort", onAbort);
      if (signal?.aborted) checkStatus(api, api.runOptionsUnsetTerminate(frame.runOptions));
    }
    if (status === 0n) return;
    const failure = takeError(api, status);
    throw signal?.aborted ? cancelled(failure) : failure;
  }

  #makeFrame(): Frame {
    const { api, runConfig } = this.#parts;
    const runOptions = made(api, api.createRunOptions);
    for (const [key, value] of runConfig) checkStatus(api, api.addRunConfigEntry(runOptions, key, value));
    const inputNames = new BigUint64Array(this.inputs.length);
    const inputValues = new BigUint64Array(this.inputs.length);
    const outputNames = new BigUint64Array(this.outputs.length);
    const outputValues = new BigUint64Array(this.outputs.length);
    return {
      inputNames,
      inputValues,
      outputNames,
      outputValues,
      addresses: [addressOf(inputNames), addressOf(inputValues), addressOf(outputNames), addressOf(outputValues)],
      shape: new BigInt64Array(rankMax),
      runOptions,
    };
  }

  #inputValue(frame: Frame, input: OnnxInput): bigint {
    const type = this.inputs[input.index]?.elementType ?? 0;
    if (input.data instanceof Uint8Array) return this.#tensorOver(frame, type, input.shape, input.data);
    const { api, allocator } = this.#parts;
    writeShape(frame.shape, input.shape);
    const value = made(api, api.createTensorAsOrtValue, allocator, frame.shape, input.shape.length, onnxStringType);
    try {
      for (const [index, element] of input.data.entries()) {
        const buffer = made(api, api.getResizedStringTensorElementBuffer, value, index, element.byteLength);
        copyTo(buffer, element);
      }
    } catch (error) {
      api.releaseValue(value);
      throw error;
    }
    return value;
  }

  #tensorOver(frame: Frame, type: number, shape: readonly number[], data: Uint8Array): bigint {
    const { api, cpuMemory } = this.#parts;
    writeShape(frame.shape, shape);
    return made(
      api,
      api.createTensorWithDataAsOrtValue,
      cpuMemory,
      data,
      data.byteLength,
      frame.shape,
      shape.length,
      type,
    );
  }

  #result(value: bigint, output: OnnxOutput, place: OnnxRun["place"]): OnnxResult {
    const { api } = this.#parts;
    const declared = this.outputs[output.index] as OnnxValueInfo;
    if (output.target !== null) {
      return { kind: "tensor", shape: output.target.shape, elementType: declared.elementType };
    }
    if (value === 0n) {
      throw new InferenceError("INTERNAL", `onnx runtime error 1: output '${declared.name}' was not produced`);
    }
    if (readInt(api.getValueType, api, value) !== onnxTensorKind) {
      throw new InferenceError("INTERNAL", `output tensor '${declared.name}' is not a tensor`);
    }
    const { elementType, dims: shape } = describeTensor(api, made(api, api.getTensorTypeAndShape, value), true);
    if (elementType === onnxStringType) {
      return { kind: "strings", shape, elements: readStrings(api, value, shape) };
    }
    const byteLength = shape.reduce((count, dim) => count * dim, elementBytes.get(elementType) ?? 0);
    const target = place(output.index, shape, byteLength);
    if (byteLength > 0) copyFrom(made(api, api.getTensorMutableData, value), target);
    return { kind: "tensor", shape, elementType };
  }
}

const onnxTensorKind = 1;

function cancelled(cause?: Error): InferenceError {
  return new InferenceError("CANCELLED", "Request cancelled", cause === undefined ? {} : { cause });
}

function writeShape(target: BigInt64Array, shape: readonly number[]): void {
  if (shape.length > rankMax) {
    throw new InferenceError("INVALID_ARG", `tensors of more than ${rankMax} dimensions are not supported`);
  }
  for (let axis = 0; axis < shape.length; axis += 1) target[axis] = BigInt(shape[axis] as number);
}

function releaseAll(api: OrtApi, values: BigUint64Array): void {
  for (let index = 0; index < values.length; index += 1) {
    if (values[index] !== 0n) api.releaseValue(values[index] as bigint);
    values[index] = 0n;
  }
}

function readStrings(api: OrtApi, value: bigint, shape: readonly number[]): readonly Uint8Array[] {
  const count = shape.reduce((product, dim) => product * dim, 1);
  if (count === 0) return [];
  const byteLength = Number(made(api, api.getStringTensorDataLength, value));
  // One byte more than needed: the library refuses a null buffer even when every string is empty.
  const bytes = new Uint8Array(byteLength + 1);
  const offsets = new BigUint64Array(count);
  checkStatus(api, api.getStringTensorContent(value, bytes, byteLength, offsets, count));
  return Array.from(offsets, (start, index) =>
    bytes.subarray(Number(start), index + 1 < count ? Number(offsets[index + 1]) : byteLength),
  );
}

function describe(parts: SessionParts, side: "Input" | "Output"): readonly OnnxValueInfo[] {
  const { api, session, allocator } = parts;
  const count = Number(made(api, api[`sessionGet${side}Count`], session));
  return Array.from({ length: count }, (_, index) => {
    const nameAddress = made(api, api[`sessionGet${side}Name`], session, index, allocator);
    const name = readText(nameAddress);
    checkStatus(api, api.allocatorFree(allocator, nameAddress));
    const typeInfo = made(api, api[`sessionGet${side}TypeInfo`], session, index);
    try {
      const onnxType = readInt(api.getOnnxTypeFromTypeInfo, api, typeInfo);
      if (onnxType !== onnxTensorKind) return { name, onnxType, elementType: 0, dims: [], symbols: [] };
      // Borrowed from the type info.
      const tensorInfo = made(api, api.castTypeInfoToTensorInfo, typeInfo);
      return { name, onnxType, ...describeTensor(api, tensorInfo, false) };
    } finally {
      api.releaseTypeInfo(typeInfo);
    }
  });
}

function describeTensor(api: OrtApi, info: bigint, release: boolean) {
  try {
    const elementType = readInt(api.getTensorElementType, api, info);
    const rank = Number(made(api, api.getDimensionsCount, info));
    const dims = new BigInt64Array(rank);
    const symbols = new BigUint64Array(rank);
    if (rank > 0) {
      checkStatus(api, api.getDimensions(info, dims, rank));
      checkStatus(api, api.getSymbolicDimensions(info, symbols, rank));
    }
    return {
      elementType,
      dims: Array.from(dims, Number),
      symbols: Array.from(symbols, (address) => (address === 0n ? "" : readText(address))),
    };
  } finally {
    if (release) api.releaseTensorTypeAndShapeInfo(info);
  }
}

function readInt(get: OrtApi[keyof OrtApi], api: OrtApi, handle: bigint): number {
  const slot = new Int32Array(1);
  checkStatus(api, get(handle, slot));
  return slot[0] as number;
}
