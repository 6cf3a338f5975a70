import type { EncoderPlan, LayerNames } from "./encoder-plan.ts";
import type { EncoderWeights } from "./encoder-weights.ts";
import type { GraphBuilder } from "./graph-builder.ts";

/** The context in which the parts of a graph are built. */
export interface GraphContext {
  readonly plan: EncoderPlan;
  readonly graph: GraphBuilder;
  readonly weights: EncoderWeights;
}

export interface EmbeddingInputs {
  /** INT32 or INT64 [batch, tokens], as the graph's inputs are. */
  readonly ids: string;
  /** Null if all tokens belong to the first segment. */
  readonly tokenTypes: string | null;
  /** INT64 [batch, tokens]; null if positions start at zero. */
  readonly positions: string | null;
}

export interface AttentionInputs {
  /** [batch, tokens, hidden width]. */
  readonly hidden: string;
  /** The result of `prepareMask`. */
  readonly mask: string;
  /** Scores to add, [1, heads, tokens, tokens]; null for none. */
  readonly distances: string | null;
}

/** Alternative operators for the parts of a graph. Each method returns the name of its output. */
export interface OperatorSet {
  readonly opsets: Readonly<Record<string, number>>;
  /** Adds normalised embeddings, [batch, tokens, embedding width]. */
  embed(context: GraphContext, inputs: EmbeddingInputs): string;
  /** Called once per graph, with the input mask: 1 for tokens, 0 for padding. */
  prepareMask(context: GraphContext, mask: string): string;
  /** Adds attention: the heads' result, [batch, tokens, hidden width], before its projection. */
  attend(context: GraphContext, names: LayerNames, inputs: AttentionInputs): string;
  /** Adds the activation of `value` plus `bias`. */
  activate(context: GraphContext, value: string, bias: string): string;
}

/** Added to the score of padding: after the softmax its weight is 0. */
export const maskedScore = -10_000;

/** Values of onnx.TensorProto.DataType for casts. */
export const castTypes = { FLOAT: 1, INT32: 6, INT64: 7, FLOAT16: 10 } as const;
