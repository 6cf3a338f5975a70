import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { unreachable } from "@galatea/base";

type Nested = number | readonly Nested[];

/** A golden file: a tiny encoder, and the outputs of `transformers` for it. */
export interface Golden {
  readonly config: Readonly<Record<string, unknown>>;
  readonly tensors: readonly (readonly [name: string, shape: readonly number[], offset: number])[];
  readonly cases: readonly {
    readonly inputs: Readonly<Record<string, Nested>>;
    readonly outputs: Readonly<Record<string, Nested>>;
  }[];
}

export async function readGolden(name: string): Promise<Golden> {
  return JSON.parse(await readFile(new URL(`golden/${name}.json`, import.meta.url), "utf8")) as Golden;
}

/** Returns the numbers of a tensor, computed from its name as in `golden.py`. */
export function goldenNumbers(name: string, count: number, offset: number): Float32Array {
  const seed = crc32(name);
  return Float32Array.from({ length: count }, (_, index) => {
    let x = (Math.imul(index, 0x9e3779b1) + seed) >>> 0;
    x ^= x >>> 15;
    x = Math.imul(x >>> 0, 0x85ebca6b) >>> 0;
    x = (x ^ (x >>> 13)) >>> 0;
    return (x / 2 ** 32 - 0.5) * 0.8 + offset;
  });
}

export interface CheckpointForm {
  readonly prefix?: string;
  /** True to use the names of normalisation tensors in older checkpoints. */
  readonly formerNames?: true;
  readonly type?: "F32" | "F16" | "BF16" | "F64";
  /** Number of files over which the tensors are distributed. */
  readonly shards?: number;
  /** Names of tensors to add to those of the golden encoder. */
  readonly further?: readonly string[];
}

/** Writes a golden encoder in the format of `save_pretrained`. */
export async function writeCheckpoint(directory: string, golden: Golden, form: CheckpointForm = {}): Promise<void> {
  const { prefix = "", type = "F32", shards = 1, further = [] } = form;
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "config.json"), JSON.stringify(golden.config));
  const tensors = golden.tensors.map(([name, shape, offset]): Written => {
    const count = shape.reduce((product, dim) => product * dim, 1);
    const former = name.replace(/LayerNorm\.weight$/, "LayerNorm.gamma").replace(/LayerNorm\.bias$/, "LayerNorm.beta");
    const bytes = encodeNumbers(goldenNumbers(name, count, offset), type);
    return { name: prefix + (form.formerNames ? former : name), dtype: type, shape, bytes };
  });
  for (const name of further)
    tensors.push({ name, dtype: type, shape: [2], bytes: encodeNumbers(new Float32Array(2), type) });
  // Checkpoints also contain buffers, which are not weights.
  tensors.push({ name: `${prefix}embeddings.position_ids`, dtype: "I64", shape: [1], bytes: Buffer.alloc(8) });
  if (shards === 1) return writeFile(join(directory, "model.safetensors"), safetensors(tensors));
  const map: Record<string, string> = {};
  for (let shard = 0; shard < shards; shard++) {
    const file = `model-${shard + 1}-of-${shards}.safetensors`;
    const own = tensors.filter((_, index) => index % shards === shard);
    for (const { name } of own) map[name] = file;
    await writeFile(join(directory, file), safetensors(own));
  }
  await writeFile(join(directory, "model.safetensors.index.json"), JSON.stringify({ weight_map: map }));
}

interface Written {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Buffer;
}

export function safetensors(tensors: readonly Written[], metadata: Record<string, string> = { format: "pt" }): Buffer {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let end = 0;
  for (const { name, dtype, shape, bytes } of tensors)
    header[name] = { dtype, shape, data_offsets: [end, (end += bytes.byteLength)] };
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.byteLength));
  return Buffer.concat([length, text, ...tensors.map(({ bytes }) => bytes)]);
}

export function encodeNumbers(numbers: Float32Array, type: NonNullable<CheckpointForm["type"]>): Buffer {
  switch (type) {
    case "F32":
      return Buffer.from(numbers.buffer);
    case "F16":
      return Buffer.from(Float16Array.from(numbers).buffer);
    case "F64":
      return Buffer.from(Float64Array.from(numbers).buffer);
    case "BF16": {
      const words = new Uint32Array(numbers.buffer);
      return Buffer.from(Uint16Array.from(words, (word) => (word + 0x8000) >>> 16).buffer);
    }
    default:
      return unreachable(type);
  }
}

/** Returns the shape and the numbers of a nested list. */
export function flatten(nested: Nested): { readonly shape: readonly number[]; readonly numbers: readonly number[] } {
  const shape: number[] = [];
  for (let each = nested; Array.isArray(each); each = each[0]) shape.push(each.length);
  return { shape, numbers: ([nested] as unknown[]).flat(Infinity) as number[] };
}
