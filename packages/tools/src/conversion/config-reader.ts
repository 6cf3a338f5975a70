import { ConversionError } from "./conversion-error.ts";
import type { Activation } from "./encoder-plan.ts";

const sizeMax = 2 ** 24;
const countMax = 256;

/** Activations by their names in config.json. */
const activations: Readonly<Record<string, Activation>> = {
  gelu: "gelu",
  gelu_python: "gelu",
  gelu_new: "gelu-tanh",
  gelu_fast: "gelu-tanh",
  gelu_pytorch_tanh: "gelu-tanh",
  relu: "relu",
  silu: "silu",
  swish: "silu",
  tanh: "tanh",
};

/**
 * The values of a config.json. Each value is checked when it is read. A missing value has the default of
 * `transformers`.
 */
export class ConfigReader {
  readonly #config: Readonly<Record<string, unknown>>;

  constructor(config: Readonly<Record<string, unknown>>) {
    this.#config = config;
  }

  size(name: string, missing: number, min = 1): number {
    return this.#integer(name, missing, { min, max: sizeMax });
  }

  /** Returns a number of layers or of groups of layers. */
  count(name: string, missing: number): number {
    return this.#integer(name, missing, { min: 1, max: countMax });
  }

  epsilon(name: string, missing: number): number {
    const value = this.#config[name] ?? missing;
    if (typeof value !== "number" || !(value > 0 && value < 1)) throw this.#wrong(name, "a number between 0 and 1");
    return value;
  }

  activation(name: string, missing: string): Activation {
    const value = this.#config[name] ?? missing;
    const known = typeof value === "string" && Object.hasOwn(activations, value) ? activations[value] : undefined;
    if (known === undefined) throw this.#wrong(name, `one of ${Object.keys(activations).join(", ")}`);
    return known;
  }

  /** Throws unless the value is `value`, which is also the default. The graph implements no other value. */
  only(name: string, value: string | number | boolean): void {
    const found = this.#config[name] ?? value;
    if (found !== value) throw this.#wrong(name, JSON.stringify(value));
  }

  #integer(name: string, missing: number, { min, max }: { readonly min: number; readonly max: number }): number {
    const value = this.#config[name] ?? missing;
    if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max)
      throw this.#wrong(name, `a number from ${min} to ${max}`);
    return value;
  }

  #wrong(name: string, expected: string): ConversionError {
    const found = this.#config[name];
    const problem = found === undefined ? "is missing" : `is ${JSON.stringify(found)?.slice(0, 100)}`;
    return new ConversionError(
      `Cannot convert the model: '${name}' in config.json ${problem}, but must be ${expected}`,
    );
  }
}
