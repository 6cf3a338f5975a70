import type { GraphTensor, OnnxModel } from "@galatea/server/onnx-file";
import type { Checkpoint } from "./checkpoint.ts";
import type { WeightType } from "./constant-bytes.ts";
import { ConversionError } from "./conversion-error.ts";
import { distanceScores } from "./distances.ts";
import type { EncoderPlan, LayerNames } from "./encoder-plan.ts";
import { EncoderWeights } from "./encoder-weights.ts";
import { fusedOperators } from "./fused-operators.ts";
import { GraphBuilder } from "./graph-builder.ts";
import { castTypes, type GraphContext, type OperatorSet } from "./operator-set.ts";
import { standardOperators } from "./standard-operators.ts";

export interface GraphOptions {
  readonly weights: WeightType;
  /** Element type of the graph's inputs. */
  readonly integers: "INT64" | "INT32";
  readonly operators: "fused" | "standard";
  readonly opset: number;
  /** True if all sentences have a single segment. The graph then has no input `token_type_ids`. */
  readonly oneSegment: boolean;
  /** True to add the output `pooler_output`. */
  readonly pooler: boolean;
  /** Replacements for the names of inputs and outputs, by their names in `transformers`. */
  readonly names: ReadonlyMap<string, string>;
}

export interface EncoderGraph {
  readonly model: OnnxModel;
  /** Names of the checkpoint's tensors that the graph does not use. */
  readonly left: readonly string[];
}

const nameForm = /^[A-Za-z_][\w.:-]{0,127}$/;

/**
 * Returns the graph of an encoder. Its inputs are `input_ids`, `attention_mask` and, if sentences have segments,
 * `token_type_ids`, each [batch, tokens]. Its outputs are `last_hidden_state`, FP32 [batch, tokens, hidden width], and
 * `pooler_output`, FP32 [batch, hidden width]. This reads no weights; they are read when the graph's constants are
 * written.
 */
export function encoderGraph(plan: EncoderPlan, checkpoint: Checkpoint, options: GraphOptions): EncoderGraph {
  const graph = new GraphBuilder();
  const weights = new EncoderWeights(checkpoint, graph, { type: options.weights, words: plan.embeddings.words });
  const context = { plan, graph, weights };
  const operators = (options.operators === "fused" ? fusedOperators : standardOperators)(options.opset);
  const hasTypes = plan.tokenTypeCount > 1 && !options.oneSegment;
  const inputNames = ["input_ids", "attention_mask", ...(hasTypes ? ["token_type_ids"] : [])];
  const outputNames = ["last_hidden_state", ...(options.pooler ? ["pooler_output"] : [])];
  const named = renamed([...inputNames, ...outputNames], options.names);
  const name = (each: string) => named.get(each) as string;

  const hidden = addEncoder(context, operators, {
    ids: name("input_ids"),
    mask: name("attention_mask"),
    tokenTypes: hasTypes ? name("token_type_ids") : null,
  });
  const states = respond(context, hidden, name("last_hidden_state"));
  if (options.pooler) respond(context, addPooler(context, states), name("pooler_output"));
  const tokens = ["batch", "tokens"];
  const output = (each: string, dims: GraphTensor["dims"]): GraphTensor => ({ name: name(each), type: "FLOAT", dims });
  const model: OnnxModel = {
    graphName: plan.architecture,
    opsets: operators.opsets,
    inputs: inputNames.map((each) => ({ name: name(each), type: options.integers, dims: tokens })),
    outputs: outputNames.map((each) =>
      each === "pooler_output"
        ? output(each, ["batch", plan.hiddenWidth])
        : output(each, [...tokens, plan.hiddenWidth]),
    ),
    constants: graph.constants,
    operators: graph.operators,
  };
  return { model, left: weights.left() };
}

function renamed(names: readonly string[], desired: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  for (const [name, other] of desired) {
    if (!names.includes(name))
      throw new ConversionError(
        `the graph has no '${name}' that could be called '${other}'; it has ${names.join(", ")}`,
      );
    if (!nameForm.test(other)) throw new ConversionError(`'${other}' is not a valid name for an input or an output`);
  }
  const named = new Map(names.map((name) => [name, desired.get(name) ?? name]));
  if (new Set(named.values()).size < named.size)
    throw new ConversionError(`two inputs or outputs would have one name: ${[...named.values()].join(", ")}`);
  return named;
}

/** Adds an output in FP32, whatever type the graph computes in. Returns the name of the value for further operators. */
function respond({ graph, weights }: GraphContext, value: string, output: string): string {
  if (weights.type === "FLOAT") return graph.rename(value, output);
  graph.rename(graph.cast(value, castTypes.FLOAT), output);
  return value;
}

interface Inputs {
  readonly ids: string;
  readonly mask: string;
  readonly tokenTypes: string | null;
}

function addEncoder(context: GraphContext, operators: OperatorSet, { ids, mask, tokenTypes }: Inputs): string {
  const { plan, graph, weights } = context;
  const positions = plan.paddingId === null ? null : countedPositions(context, ids, plan.paddingId);
  let hidden = operators.embed(context, { ids, tokenTypes, positions });
  const { projection } = plan.embeddings;
  if (projection !== null) {
    const projected = graph.add("MatMul", [hidden, weights.dense(projection, plan.embeddingWidth, plan.hiddenWidth)]);
    hidden = graph.add("Add", [projected, weights.bias(projection, plan.hiddenWidth)]);
  }
  const prepared = operators.prepareMask(context, mask);
  const distances = plan.distances === null ? null : distanceScores(context, plan.distances, ids);
  for (const names of plan.layers) {
    const attended = operators.attend(context, names, { hidden, mask: prepared, distances });
    hidden = addDense(context, operators, names, { hidden, attended });
  }
  return hidden;
}

/**
 * Adds the part of a layer after its attention. It has two steps; each is followed by adding the step's input and
 * normalising.
 */
function addDense(
  { plan, graph, weights }: GraphContext,
  operators: OperatorSet,
  names: LayerNames,
  { hidden, attended }: { readonly hidden: string; readonly attended: string },
): string {
  const { hiddenWidth: width, innerWidth: inner } = plan;
  const normalised = (value: string, dense: string, norm: string, skip: string) =>
    graph.add(
      "LayerNormalization",
      [
        graph.add("Sum", [value, weights.bias(dense, width), skip]),
        weights.stored(`${norm}.weight`, [width]),
        weights.stored(`${norm}.bias`, [width]),
      ],
      { attributes: { axis: -1n, epsilon: plan.epsilon } },
    );
  const projected = graph.add("MatMul", [attended, weights.dense(names.projected, width, width)]);
  const middle = normalised(projected, names.projected, names.attentionNorm, hidden);
  const widened = graph.add("MatMul", [middle, weights.dense(names.widened, width, inner)]);
  const activated = operators.activate({ plan, graph, weights }, widened, weights.bias(names.widened, inner));
  const narrowed = graph.add("MatMul", [activated, weights.dense(names.narrowed, inner, width)]);
  return normalised(narrowed, names.narrowed, names.outputNorm, middle);
}

/**
 * Returns position ids, INT64 [batch, tokens]. Padding has the number `padding`; the other tokens have consecutive
 * numbers that start after it.
 */
function countedPositions({ graph }: GraphContext, ids: string, padding: number): string {
  const wide = graph.cast(ids, castTypes.INT64);
  const pad = graph.integers(`integer/${padding}`, [padding], []);
  const counted = graph.cast(graph.add("Not", [graph.add("Equal", [wide, pad])]), castTypes.INT64);
  const sums = graph.add("CumSum", [counted, graph.integers("integer/1", [1], [])]);
  return graph.add("Add", [graph.add("Mul", [sums, counted]), pad]);
}

/** Adds the pooler, a dense layer over the first token: [batch, hidden width]. */
function addPooler({ plan, graph, weights }: GraphContext, hidden: string): string {
  const { hiddenWidth: width, pooler } = plan;
  if (!weights.has(`${pooler}.weight`)) throw new ConversionError(`these weights have no pooler ('${pooler}.weight')`);
  const first = graph.add("Gather", [hidden, graph.integers("integer/0", [0], [])], { attributes: { axis: 1n } });
  const dense = graph.add("Add", [
    graph.add("MatMul", [first, weights.dense(pooler, width, width)]),
    weights.bias(pooler, width),
  ]);
  return graph.add("Tanh", [dense]);
}
