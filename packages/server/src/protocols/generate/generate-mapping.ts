import { InferenceError, type ByteLease } from "@galatea/base";
import type { ParameterValue } from "../../inference/index.ts";
import type { InputConfig, ModelConfig } from "../../modelconfig/index.ts";
import { datatypes, readJsonString, type JsonScanner } from "../../tensor/index.ts";
import {
  countVisited,
  readCustomParameter,
  eachMember,
  estimateParsedBytes,
  parsingRequestJson,
  rejectHalfFloats,
  stringAt,
  memberError,
  type InputHeader,
} from "../infer-codec/index.ts";
import { inferInputShape } from "./input-shape.ts";

/** Name of the member whose own members are treated as members of the request. */
const nestedKeyword = "parameters";

/** The inputs and parameters of a request. The elements of the inputs are not read yet. */
export interface GenerateMapping {
  readonly scanner: JsonScanner;
  readonly id: string;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly inputs: readonly InputHeader[];
  /**
   * The error of the first member that cannot be mapped; the mapping stops there. As in Triton, it is reported only after errors in the
   * elements of earlier inputs.
   */
  readonly failure: InferenceError | null;
}

export interface MappingOptions {
  readonly config: ModelConfig;
  readonly inputBytesMax: number;
  /** Memory lease to which parameters are charged. */
  readonly memory: ByteLease;
}

/**
 * Maps the JSON document at the scanner's position to inputs and parameters. Throws errors of the document as a whole. Each input is
 * limited by --http-max-input-size, all other members by `memory`.
 */
export function mapGenerateRequest(scanner: JsonScanner, options: MappingOptions): GenerateMapping {
  const rootAt = parsingRequestJson(() => checkDocument(scanner));
  if (scanner.bytes[rootAt] !== 0x7b) throw new InferenceError("INTERNAL", "attempt to get members for non-object");
  const mapper = new Mapper(scanner, options);
  let failure: InferenceError | null = null;
  mapper.readId(rootAt);
  try {
    mapper.takeRoot(rootAt);
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    failure = error;
  }
  const { id, parameters, inputs } = mapper;
  return { scanner, id, parameters, inputs, failure };
}

/** Checks the syntax of the whole document, so that later errors concern only its meaning. Returns the offset of the root value. */
function checkDocument(scanner: JsonScanner): number {
  if (scanner.peek() === -1) scanner.fail("The document is empty.", scanner.at);
  const rootAt = scanner.at;
  scanner.skipValue();
  scanner.finish();
  return rootAt;
}

/**
 * Calls `visit` for every member of the object at `at`, including duplicates. The scanner is at the member's value. A value that `visit`
 * does not read is skipped.
 */
function visitMembers(scanner: JsonScanner, at: number, visit: (name: string, valueAt: number) => number): void {
  scanner.at = at;
  if (!scanner.open(0x7d)) return;
  do {
    countVisited(scanner);
    const nameAt = scanner.key() - 1;
    scanner.peek();
    const valueAt = scanner.at;
    scanner.at = nameAt;
    const name = readJsonString(scanner);
    scanner.at = valueAt;
    scanner.at = visit(name, valueAt);
  } while (scanner.more(0x7d));
}

function endOf(scanner: JsonScanner, valueAt: number): number {
  scanner.at = valueAt;
  scanner.skipValue();
  return scanner.at;
}

class Mapper {
  id = "";
  readonly parameters = new Map<string, ParameterValue>();
  readonly inputs: InputHeader[] = [];
  readonly #scanner: JsonScanner;
  readonly #options: MappingOptions;
  readonly #inputOf: ReadonlyMap<string, InputConfig>;
  readonly #acquired = new Set<string>();
  #nestedTaken = false;
  #parameterTextBytes = 0;
  #grantedBytes = 0;

  constructor(scanner: JsonScanner, options: MappingOptions) {
    this.#scanner = scanner;
    this.#options = options;
    this.#inputOf = new Map(options.config.inputs.map((input) => [input.name, input]));
  }

  /** Reads the first `id` member of the request itself. Like any other member, it is also passed to the model as a parameter. */
  readId(rootAt: number): void {
    eachMember(this.#scanner, rootAt, (name, at) => {
      if (name === "id") this.id = stringAt(this.#scanner, at, (text) => memberError("id", text));
    });
    // Resets the count, because the mapping visits the same members again.
    this.#scanner.visitedCount = 0;
  }

  takeRoot(rootAt: number): void {
    const seen = new Set<string>();
    visitMembers(this.#scanner, rootAt, (name, at) =>
      name === nestedKeyword ? this.#takeNested(at) : this.#take(name, at, seen),
    );
  }

  #takeNested(at: number): number {
    if (this.#inputOf.has(nestedKeyword)) {
      const text = `Keyword '${nestedKeyword}' for nested schema also given as input tensor name`;
      throw new InferenceError("INVALID_ARG", text);
    }
    if (this.#scanner.bytes[at] !== 0x7b) {
      const text = `Expected JSON object for keyword: '${nestedKeyword}': attempt to access JSON non-object as object`;
      throw new InferenceError("INTERNAL", text);
    }
    // Only the first of several `parameters` members is used.
    if (this.#nestedTaken) return endOf(this.#scanner, at);
    this.#nestedTaken = true;
    const seen = new Set<string>();
    try {
      visitMembers(this.#scanner, at, (name, valueAt) => this.#take(name, valueAt, seen));
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      const text = `Converting keyword: '${nestedKeyword}': ${error.message}`;
      throw new InferenceError(error.code, text, { cause: error, reason: error.reason });
    }
    return this.#scanner.at;
  }

  /**
   * Maps a member and returns the end of its value. The first of several parameters with the same name in one object (tracked by `seen`) is
   * used. If both objects have the parameter, the later one is used.
   */
  #take(name: string, at: number, seen: Set<string>): number {
    const input = this.#inputOf.get(name);
    if (input !== undefined) return this.#takeInput(at, input);
    const end = endOf(this.#scanner, at);
    if (seen.has(name)) return end;
    seen.add(name);
    this.#count(name.length + end - at);
    this.parameters.set(name, readCustomParameter(this.#scanner, at, name));
    return end;
  }

  /** Charges the text of a parameter to the memory lease before it is decoded. */
  #count(textBytes: number): void {
    this.#parameterTextBytes += textBytes;
    const parsedBytes = estimateParsedBytes(this.#parameterTextBytes);
    if (parsedBytes === this.#grantedBytes) return;
    this.#options.memory.grow(parsedBytes - this.#grantedBytes);
    this.#grantedBytes = parsedBytes;
  }

  #takeInput(at: number, { name, datatype, dims }: InputConfig): number {
    const { config, inputBytesMax } = this.#options;
    const isElement = this.#scanner.bytes[at] !== 0x5b;
    const elementCount = isElement ? 1 : this.#countElements();
    const end = isElement ? endOf(this.#scanner, at) : this.#scanner.at;
    const shape = inferInputShape(config.maxBatchSize > 0 ? [-1, ...dims] : dims, elementCount);
    if (shape === null) {
      throw new InferenceError("INVALID_ARG", `The schema can not convert input '${name}' to tensor with proper shape`);
    }
    if (this.#acquired.has(name)) {
      const id = this.id === "" ? "<id_unknown>" : this.id;
      throw new InferenceError("INVALID_ARG", `[request id: ${id}] input '${name}' already exists in request`);
    }
    this.#acquired.add(name);
    rejectHalfFloats(name, datatype);
    const byteLength = datatype === "BYTES" ? end - at : elementCount * datatypes[datatype].byteSize;
    if (byteLength > inputBytesMax) {
      throw new InferenceError(
        "INVALID_ARG",
        `JSON input '${name}' has a byte_size (${byteLength} bytes) that exceeds the maximum allowed value of ${inputBytesMax} bytes. Use --http-max-input-size to increase the limit.`,
      );
    }
    this.inputs.push({ name, datatype, shape, elementCount, dataAt: at, dataEnd: end, isElement, binaryBytes: 0 });
    return end;
  }

  /**
   * Counts the elements of an array and moves the scanner past it. A nested array counts as one element; its error is reported when the
   * elements are read.
   */
  #countElements(): number {
    const scanner = this.#scanner;
    const walkedCount = scanner.skipWalked();
    if (walkedCount !== null) return walkedCount;
    if (!scanner.open(0x5d)) return 0;
    let count = 0;
    do {
      scanner.skipValue();
      count++;
    } while (scanner.more(0x5d));
    return count;
  }
}
