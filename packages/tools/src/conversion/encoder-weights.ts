import { tensorOfShape, type Checkpoint } from "./checkpoint.ts";
import { addedRowBytes, chosenRowBytes, joinedBytes, transposedBytes, type WeightType } from "./constant-bytes.ts";
import { ConversionError } from "./conversion-error.ts";
import type { GraphBuilder } from "./graph-builder.ts";
import type { StoredTensor } from "./stored-tensor.ts";

/** Suffixes of the names of normalisation tensors in older checkpoints. */
const formerEndings: Readonly<Record<string, string>> = { ".weight": ".gamma", ".bias": ".beta" };

/** Adds a checkpoint's tensors to a graph as constants, and records which of them the graph uses. */
export class EncoderWeights {
  readonly type: WeightType;
  readonly #checkpoint: Checkpoint;
  readonly #graph: GraphBuilder;
  /** Prefix of all names if the encoder is a part of a larger model, such as "bert."; else "". */
  readonly #prefix: string;
  readonly #acquired = new Set<string>();

  /** `words` is a tensor that every such encoder has. Its name in the checkpoint shows the prefix. */
  constructor(checkpoint: Checkpoint, graph: GraphBuilder, { type, words }: { type: WeightType; words: string }) {
    this.#checkpoint = checkpoint;
    this.#graph = graph;
    this.type = type;
    const found = [...checkpoint.tensors.keys()].filter((name) => name === words || name.endsWith(`.${words}`));
    const [name] = found;
    if (name === undefined || found.length > 1)
      throw new ConversionError(
        `the weights in '${checkpoint.directory}' have ${found.length === 0 ? "no" : `${found.length} of`} '${words}'`,
      );
    this.#prefix = name.slice(0, name.length - words.length);
  }

  /** Returns the names of the checkpoint's unused tensors, which usually belong to task heads. */
  left(): readonly string[] {
    return [...this.#checkpoint.tensors.keys()].filter((name) => !this.#acquired.has(name));
  }

  has(name: string): boolean {
    return this.#checkpoint.tensors.has(this.#prefix + name);
  }

  /** Adds a table or a vector in its stored form. Returns the constant's name. */
  stored(name: string, shape: readonly number[]): string {
    return this.#graph.constant(name, this.type, shape, joinedBytes([this.#tensor(name, shape)], this.type));
  }

  /** Adds the weight of a dense layer, which is stored as [to, from], as [from, to]. Returns the constant's name. */
  dense(name: string, from: number, to: number): string {
    const bytes = transposedBytes(this.#tensor(`${name}.weight`, [to, from]), this.type);
    return this.#graph.constant(`${name}.weight`, this.type, [from, to], bytes);
  }

  bias(name: string, width: number): string {
    return this.stored(`${name}.bias`, [width]);
  }

  /** Adds the concatenation of vectors with the same width, under the given name. Returns the constant's name. */
  joined(name: string, segments: readonly string[], width: number): string {
    const tensors = segments.map((segment) => this.#tensor(segment, [width]));
    return this.#graph.constant(name, this.type, [segments.length * width], joinedBytes(tensors, this.type));
  }

  /** Adds a table, to each row of which the first row of `added` was added. Returns the constant's name. */
  withFirstRow(name: string, shape: readonly [number, number], added: string, addedRows: number): string {
    const row = this.#tensor(added, [addedRows, shape[1]]);
    const bytes = addedRowBytes(this.#tensor(name, shape), row, this.type);
    return this.#graph.constant(`${name}.of-first-segment`, this.type, shape, bytes);
  }

  /** Adds rows of a table, in the order of `positions`. Returns the constant's name. */
  rows(name: string, shape: readonly [number, number], positions: Int32Array): string {
    const bytes = chosenRowBytes(this.#tensor(name, shape), positions, this.type);
    return this.#graph.constant(`${name}.by-distance`, this.type, [positions.length, shape[1]], bytes);
  }

  #tensor(name: string, shape: readonly number[]): StoredTensor {
    const complete = this.#prefix + name;
    const former = Object.entries(formerEndings).map(([ending, old]) =>
      complete.endsWith(ending) ? complete.slice(0, -ending.length) + old : complete,
    );
    const found = [complete, ...former].find((each) => this.#checkpoint.tensors.has(each)) ?? complete;
    this.#acquired.add(found);
    return tensorOfShape(this.#checkpoint, found, shape);
  }
}
