import { InferenceError } from "@galatea/base";
import {
  addressOf,
  checkStatus,
  copyNative,
  copyFromNative,
  copyToNative,
  createHandle,
  type OrtApi,
  consumeError,
} from "./onnxruntime-api.ts";
import { elementBytes, onnxStringType, onnxTensorKind, callForInt, readTensorInfo } from "./onnxruntime-values.ts";
import { runRankMax, type RunCommand, type RunResult, type RunValue } from "./run-wire.ts";

/** Type and shape of an output of a run. `isPlaced` is false if the library allocated its memory. */
export interface RunOutputInfo extends RunResult {
  readonly isPlaced: boolean;
}

/**
 * Calls the library's `Run` in the current thread, one run at a time: `run`, then `place` for outputs that the library allocated, then
 * `end`.
 */
export class RunCaller {
  /** OrtRunOptions for plain runs, and for runs that shrink the memory pool. Another thread can terminate a run through them. */
  readonly plainOptions: bigint;
  readonly shrinkingOptions: bigint;
  readonly #api: OrtApi;
  readonly #cpuMemory: bigint;
  readonly #allocator: bigint;
  readonly #shape = new BigInt64Array(runRankMax);
  /** Address for empty tensors: the library rejects a null address even for zero bytes. */
  readonly #nothing = new Uint8Array(8);
  #values = new BigUint64Array(4 * 64);
  #inputCount = 0;
  #outputs: readonly RunValue[] = [];
  /** String outputs by index, encoded as BYTES tensors. */
  readonly #strings = new Map<number, Uint8Array>();

  constructor(api: OrtApi) {
    this.#api = api;
    this.#cpuMemory = createHandle(api, api.createCpuMemoryInfo, arenaAllocator, defaultMemory);
    this.#allocator = createHandle(api, api.getAllocatorWithDefaultOptions);
    this.plainOptions = createHandle(api, api.createRunOptions);
    this.shrinkingOptions = createHandle(api, api.createRunOptions);
    checkStatus(api, api.addRunConfigEntry(this.shrinkingOptions, "memory.enable_memory_arena_shrinkage", "cpu:0"));
  }

  /** Starts a run. Throws InferenceError with ONNX Runtime's text; `end` must be called in any case. */
  run(order: RunCommand): readonly RunOutputInfo[] {
    const api = this.#api;
    const { inputs, outputs } = order;
    this.#outputs = outputs;
    this.#inputCount = inputs.length;
    const count = 2 * (inputs.length + outputs.length);
    if (this.#values.length < count) this.#values = new BigUint64Array(count);
    // Four consecutive lists: names and values of the inputs, names and values of the outputs.
    const [inputValuesAt, outputNamesAt, outputValuesAt] = [inputs.length, 2 * inputs.length, this.#outputValuesAt];
    this.#values.fill(0n, 0, count);
    for (const [index, input] of inputs.entries()) {
      this.#values[index] = BigInt(input.name);
      this.#values[inputValuesAt + index] =
        input.elementType === onnxStringType ? this.#stringValue(input) : this.#tensorValue(input);
    }
    for (const [index, output] of outputs.entries()) {
      this.#values[outputNamesAt + index] = BigInt(output.name);
      if (output.shape !== null) this.#values[outputValuesAt + index] = this.#tensorValue(output);
    }
    const options = order.shrink ? this.shrinkingOptions : this.plainOptions;
    const base = addressOf(this.#values);
    const at = (index: number) => base + BigInt(index * 8);
    const status = api.run(
      BigInt(order.session),
      options,
      at(0),
      at(inputValuesAt),
      inputs.length,
      at(outputNamesAt),
      outputs.length,
      at(outputValuesAt),
    ) as bigint | null;
    if (status !== null) throw consumeError(api, status);
    return outputs.map((output, index) => this.#result(output, index));
  }

  /** Copies the outputs that the library allocated to these addresses; 0 for an output without bytes. */
  place(addresses: readonly number[]): void {
    const api = this.#api;
    for (const [index, address] of addresses.entries()) {
      if (address === 0 || this.#outputs[index]?.shape !== null) continue;
      const strings = this.#strings.get(index);
      if (strings !== undefined) {
        copyToNative(BigInt(address), strings);
        continue;
      }
      const value = this.#outputValue(index);
      const source = createHandle(api, api.getTensorMutableData, value);
      copyNative(BigInt(address), source, this.#resultOf(index, value).byteLength);
    }
  }

  /** Frees the results of the run. */
  end(): void {
    const { length: outputCount } = this.#outputs;
    this.#release(this.#inputCount, this.#inputCount);
    this.#release(this.#outputValuesAt, outputCount);
    this.#strings.clear();
    this.#outputs = [];
    this.#inputCount = 0;
  }

  get #outputValuesAt(): number {
    return 2 * this.#inputCount + this.#outputs.length;
  }

  #outputValue(index: number): bigint {
    return this.#values[this.#outputValuesAt + index] as bigint;
  }

  #release(from: number, count: number): void {
    for (let index = from; index < from + count; index += 1) {
      if (this.#values[index] !== 0n) this.#api.releaseValue(this.#values[index] as bigint);
      this.#values[index] = 0n;
    }
  }

  #tensorValue({ elementType, address, byteLength, shape }: RunValue): bigint {
    const rank = this.#writeShape(shape ?? []);
    const data = byteLength === 0 ? addressOf(this.#nothing) : BigInt(address);
    const api = this.#api;
    return createHandle(
      api,
      api.createTensorWithDataAsOrtValue,
      this.#cpuMemory,
      data,
      byteLength,
      this.#shape,
      rank,
      elementType,
    );
  }

  /**
   * Creates a string tensor. A worker may write to the shared memory at the same time, therefore the elements are copied once and only the
   * copy is read.
   */
  #stringValue({ address, byteLength, shape }: RunValue): bigint {
    const api = this.#api;
    const bytes = new Uint8Array(byteLength);
    copyFromNative(BigInt(address), bytes);
    const elements = stringElements(bytes, (shape ?? []).reduce(multiply, 1));
    const rank = this.#writeShape(shape ?? []);
    const value = createHandle(api, api.createTensorAsOrtValue, this.#allocator, this.#shape, rank, onnxStringType);
    try {
      for (const [index, element] of elements.entries()) {
        copyToNative(
          createHandle(api, api.getResizedStringTensorElementBuffer, value, index, element.byteLength),
          element,
        );
      }
    } catch (error) {
      api.releaseValue(value);
      throw error;
    }
    return value;
  }

  #writeShape(shape: readonly number[]): number {
    if (shape.length > runRankMax) {
      throw new InferenceError("INVALID_ARG", `tensors of more than ${runRankMax} dimensions are not supported`);
    }
    for (let axis = 0; axis < shape.length; axis += 1) this.#shape[axis] = BigInt(shape[axis] as number);
    return shape.length;
  }

  #result(output: RunValue, index: number): RunOutputInfo {
    const { elementType, byteLength, shape } = output;
    if (shape !== null) return { elementType, byteLength, shape, isPlaced: true };
    const api = this.#api;
    const value = this.#outputValue(index);
    if (value === 0n) throw new InferenceError("INTERNAL", "onnx runtime error 1: an output was not produced");
    if (callForInt(api.getValueType, api, value) !== onnxTensorKind) {
      throw new InferenceError("INTERNAL", "an output tensor is not a tensor");
    }
    const result = this.#resultOf(index, value);
    return { ...result, isPlaced: result.byteLength === 0 };
  }

  #resultOf(index: number, value: bigint): RunResult {
    const api = this.#api;
    const info = createHandle(api, api.getTensorTypeAndShape, value);
    try {
      const { elementType, shape } = readTensorInfo(api, info);
      if (elementType === onnxStringType) {
        const strings = readStrings(api, value, shape.reduce(multiply, 1));
        this.#strings.set(index, strings);
        return { elementType, shape, byteLength: strings.byteLength };
      }
      return { elementType, shape, byteLength: shape.reduce(multiply, elementBytes.get(elementType) ?? 0) };
    } finally {
      api.releaseTensorTypeAndShapeInfo(info);
    }
  }
}

const arenaAllocator = 1;
const defaultMemory = 0;
const multiply = (product: number, dim: number) => product * dim;

/** Splits a BYTES tensor into its elements. */
function stringElements(bytes: Uint8Array, count: number): readonly Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elements: Uint8Array[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    if (at + 4 > bytes.byteLength) throw malformedStrings(count, elements.length);
    const end = at + 4 + view.getUint32(at, true);
    if (end > bytes.byteLength || elements.length === count) throw malformedStrings(count, elements.length);
    elements.push(bytes.subarray(at + 4, end));
    at = end;
  }
  if (elements.length !== count) throw malformedStrings(count, elements.length);
  return elements;
}

function malformedStrings(desired: number, found: number): InferenceError {
  return new InferenceError("INTERNAL", `an input has ${found} complete strings, its shape has ${desired}`);
}

/** Converts a string tensor of the library to a BYTES tensor. */
function readStrings(api: OrtApi, value: bigint, count: number): Uint8Array {
  if (count === 0) return new Uint8Array(0);
  const byteLength = Number(createHandle(api, api.getStringTensorDataLength, value));
  // One byte more than needed: the library rejects a null buffer even when all strings are empty.
  const characters = new Uint8Array(byteLength + 1);
  const offsets = new BigUint64Array(count);
  checkStatus(api, api.getStringTensorContent(value, characters, byteLength, offsets, count));
  const strings = new Uint8Array(byteLength + 4 * count);
  const view = new DataView(strings.buffer);
  let at = 0;
  for (let index = 0; index < count; index += 1) {
    const start = Number(offsets[index]);
    const end = index + 1 < count ? Number(offsets[index + 1]) : byteLength;
    view.setUint32(at, end - start, true);
    strings.set(characters.subarray(start, end), at + 4);
    at += 4 + end - start;
  }
  return strings;
}
