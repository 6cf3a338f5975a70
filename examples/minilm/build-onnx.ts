/**
 * Turns the published weights of MiniLM-L6-v2 (a BERT encoder in a safetensors file) into an ONNX graph:
 *
 *   node examples/minilm/build-onnx.ts <package directory> <model.onnx>
 *
 * Inputs `input_ids` and `attention_mask`, INT64 [batch, tokens]; output `token_embeddings`, FP32 [batch, tokens, 384].
 * A sentence has one segment, so the embedding of token type 0 is added to the position embeddings here, once.
 * The operators are those of ONNX and of ONNX Runtime's own domain (com.microsoft, in every build of it) that were measured as
 * the fastest on a CPU: Sum and LayerNormalization take 13 % less of a run than the SkipLayerNormalization that its optimiser
 * makes of Add and LayerNormalization, and three projections before MultiHeadAttention 8 % less than Attention on short sentences
 * (2 % more on long ones). There is nothing left to fuse when the file is loaded.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  type Constant,
  type OnnxModel,
  type Operator,
  writeOnnxFile,
} from "../../server/src/backends/onnx-file/index.ts";
import { readSafetensors, type WeightFile } from "./safetensors.ts";

/** What of the package's config.json shapes the graph. */
interface BertShape {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly vocab_size: number;
  readonly max_position_embeddings: number;
  readonly type_vocab_size: number;
  readonly layer_norm_eps: number;
  readonly hidden_act: string;
  readonly position_embedding_type: string;
}

/** Reads `config.json` and `model.safetensors` in `modelDirectory` and writes the graph to `onnxPath`. */
export async function buildOnnx(modelDirectory: string, onnxPath: string): Promise<void> {
  const shape = JSON.parse(await readFile(join(modelDirectory, "config.json"), "utf8")) as BertShape;
  if (shape.hidden_act !== "gelu" || shape.position_embedding_type !== "absolute") {
    throw new Error(`no graph for a BERT with ${shape.hidden_act} and ${shape.position_embedding_type} positions`);
  }
  const weights = await readSafetensors(join(modelDirectory, "model.safetensors"));
  await writeOnnxFile(onnxPath, bertGraph(shape, weights));
}

function bertGraph(shape: BertShape, weights: WeightFile): OnnxModel {
  const graph = new GraphBuilder();
  let hidden = addEmbeddings(graph, shape, weights);
  for (let layer = 0; layer < shape.num_hidden_layers; layer += 1) {
    const last = layer === shape.num_hidden_layers - 1;
    hidden = addLayer(graph, { shape, weights, layer, input: hidden, output: last ? "token_embeddings" : null });
  }
  const tokens = ["batch", "tokens"];
  return {
    graphName: "all-MiniLM-L6-v2",
    opsets: { "": 17, "com.microsoft": 1 },
    inputs: [
      { name: "input_ids", type: "INT64", dims: tokens },
      { name: "attention_mask", type: "INT64", dims: tokens },
    ],
    outputs: [{ name: "token_embeddings", type: "FLOAT", dims: [...tokens, shape.hidden_size] }],
    constants: graph.constants,
    operators: graph.operators,
  };
}

function addEmbeddings(graph: GraphBuilder, shape: BertShape, weights: WeightFile): string {
  const width = shape.hidden_size;
  const positions = weights.fp32("embeddings.position_embeddings.weight", [shape.max_position_embeddings, width]);
  const types = weights.fp32("embeddings.token_type_embeddings.weight", [shape.type_vocab_size, width]);
  const words = weights.fp32("embeddings.word_embeddings.weight", [shape.vocab_size, width]);
  const ids = graph.add("Cast", ["input_ids"], { to: 6n }, { domain: "", output: "input_ids_int32" });
  graph.add("Cast", ["attention_mask"], { to: 6n }, { domain: "", output: "attention_mask_int32" });
  return graph.add(
    "EmbedLayerNormalization",
    [
      ids,
      "",
      graph.constant("word_embeddings", [shape.vocab_size, width], words),
      graph.constant(
        "position_embeddings",
        [shape.max_position_embeddings, width],
        positions.map((value, index) => value + (types[index % width] as number)),
      ),
      "",
      graph.constant("embeddings.gamma", [width], weights.fp32("embeddings.LayerNorm.weight", [width])),
      graph.constant("embeddings.beta", [width], weights.fp32("embeddings.LayerNorm.bias", [width])),
    ],
    { epsilon: shape.layer_norm_eps },
    { outputs: ["embeddings", "embeddings.mask"] },
  );
}

interface LayerOptions {
  readonly shape: BertShape;
  readonly weights: WeightFile;
  readonly layer: number;
  readonly input: string;
  readonly output: string | null;
}

/** Self-attention, then the two dense layers; each followed by adding its input back and normalising. */
function addLayer(graph: GraphBuilder, { shape, weights, layer, input, output }: LayerOptions): string {
  const { hidden_size: width, intermediate_size: inner } = shape;
  const source = `encoder.layer.${layer}`;
  const name = `layer${layer}`;
  const vector = (suffix: string, length: number) =>
    graph.constant(`${name}.${suffix}`, [length], weights.fp32(`${source}.${suffix}`, [length]));
  const dense = (suffix: string, from: number, to: number) =>
    graph.constant(
      `${name}.${suffix}`,
      [from, to],
      transposed(weights.fp32(`${source}.${suffix}`, [to, from]), to, from),
    );
  const normalise = (value: string, skip: string, options: { part: string; output: string | null }) => {
    const sum = graph.add("Sum", [value, vector(`${options.part}.dense.bias`, width), skip], {}, { domain: "" });
    return graph.add(
      "LayerNormalization",
      [sum, vector(`${options.part}.LayerNorm.weight`, width), vector(`${options.part}.LayerNorm.bias`, width)],
      { axis: -1n, epsilon: shape.layer_norm_eps },
      { domain: "", ...(options.output === null ? {} : { output: options.output }) },
    );
  };
  const project = (projection: string) =>
    graph.add("MatMul", [input, dense(`attention.self.${projection}.weight`, width, width)], {}, { domain: "" });

  const attended = graph.add(
    "MultiHeadAttention",
    [
      ...projections.map(project),
      graph.constant(`${name}.attention.bias`, [3 * width], joinedBiases(weights, source, width)),
      "attention_mask_int32",
    ],
    { num_heads: BigInt(shape.num_attention_heads), mask_filter_value: maskFilterValue },
  );
  const projected = graph.add(
    "MatMul",
    [attended, dense("attention.output.dense.weight", width, width)],
    {},
    { domain: "" },
  );
  const middle = normalise(projected, input, { part: "attention.output", output: null });
  const widened = graph.add("MatMul", [middle, dense("intermediate.dense.weight", width, inner)], {}, { domain: "" });
  const activated = graph.add("BiasGelu", [widened, vector("intermediate.dense.bias", inner)], {});
  const narrowed = graph.add("MatMul", [activated, dense("output.dense.weight", inner, width)], {}, { domain: "" });
  return normalise(narrowed, middle, { part: "output", output });
}

/** Added to the score of padding: after the softmax its weight is 0 in FP32. */
const maskFilterValue = -10_000;

const projections = ["query", "key", "value"] as const;

/** The biases of the three projections, one after the other: [3 * width]. */
function joinedBiases(weights: WeightFile, source: string, width: number): Float32Array {
  const joined = new Float32Array(3 * width);
  for (const [index, projection] of projections.entries()) {
    joined.set(weights.fp32(`${source}.attention.self.${projection}.bias`, [width]), index * width);
  }
  return joined;
}

function transposed(matrix: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(matrix.length);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      result[column * rows + row] = matrix[row * columns + column] as number;
    }
  }
  return result;
}

class GraphBuilder {
  readonly constants: Constant[] = [];
  readonly operators: Operator[] = [];

  constant(name: string, dims: readonly number[], values: Float32Array): string {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    this.constants.push({ name, type: "FLOAT", dims, bytes });
    return name;
  }

  /** Appends an operator and returns the name of its first output. */
  add(
    operator: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, bigint | number>>,
    options: { domain?: string; output?: string; outputs?: readonly string[] } = {},
  ): string {
    const first = options.outputs?.[0] ?? options.output ?? `value${this.operators.length}`;
    const outputs = options.outputs ?? [first];
    this.operators.push({ operator, domain: options.domain ?? "com.microsoft", inputs, outputs, attributes });
    return first;
  }
}

if (import.meta.main) {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [modelDirectory, onnxPath] = positionals;
  if (modelDirectory === undefined || onnxPath === undefined) {
    process.stderr.write("usage: node examples/minilm/build-onnx.ts <directory with model.safetensors> <model.onnx>\n");
    process.exitCode = 2;
  } else {
    await buildOnnx(modelDirectory, onnxPath);
  }
}
