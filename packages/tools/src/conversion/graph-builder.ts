import type { Constant, OnnxAttribute, OnnxType, Operator, StreamedBytes } from "@galatea/server/onnx-file";

export interface OperatorOptions {
  /** The operator's domain; "" is ONNX itself. */
  readonly domain?: string;
  readonly attributes?: Readonly<Record<string, OnnxAttribute>>;
  /** Names of further outputs that the operator must have and that the graph does not use. */
  readonly unread?: readonly string[];
}

/**
 * Builds a graph of operators and constants. Names that it generates begin with '/'; names of inputs and outputs do
 * not.
 */
export class GraphBuilder {
  #operators: Operator[] = [];
  readonly #constants = new Map<string, Constant>();

  get operators(): readonly Operator[] {
    return this.#operators;
  }

  get constants(): readonly Constant[] {
    return [...this.#constants.values()];
  }

  /** Adds a constant and returns its name in the graph. If there is already a constant with this name, adds nothing. */
  constant(name: string, type: OnnxType, dims: readonly number[], bytes: Uint8Array | StreamedBytes): string {
    const inGraph = `/${name}`;
    if (!this.#constants.has(inGraph)) this.#constants.set(inGraph, { name: inGraph, type, dims, bytes });
    return inGraph;
  }

  integers(name: string, values: readonly number[], dims: readonly number[] = [values.length]): string {
    return this.constant(name, "INT64", dims, new Uint8Array(BigInt64Array.from(values, BigInt).buffer));
  }

  /** Appends an operator and returns the name of its first output. */
  add(
    operator: string,
    inputs: readonly string[],
    { domain = "", attributes = {}, unread = [] }: OperatorOptions = {},
  ): string {
    const output = `/value${this.#operators.length}`;
    this.#operators.push({ operator, domain, inputs, outputs: [output, ...unread], attributes });
    return output;
  }

  /** Adds a conversion to another element type. Returns the name of the result. */
  cast(value: string, type: number): string {
    return this.add("Cast", [value], { attributes: { to: BigInt(type) } });
  }

  /** Renames a value in the whole graph. */
  rename(value: string, name: string): string {
    const other = (each: string) => (each === value ? name : each);
    this.#operators = this.#operators.map((each) => ({
      ...each,
      inputs: each.inputs.map(other),
      outputs: each.outputs.map(other),
    }));
    return name;
  }
}
