import type { EncoderPlan, LayerNames } from "./encoder-plan.ts";
import type { EncoderWeights } from "./encoder-weights.ts";
import type { GraphBuilder } from "./graph-builder.ts";

/** The plan, graph and weights from which the parts of a graph are built. */
export interface GraphContext {
  readonly plan: EncoderPlan;
  readonly graph: GraphBuilder;
  readonly weights: EncoderWeights;
}

export interface EmbeddingInputs {
  /** Token ids, INT32 or INT64 [batch, tokens]. The type is that of the graph's inputs. */
  readonly ids: string;
  /** Segment of each token; null if all tokens belong to the first segment. */
  readonly tokenTypes: string | null;
  /** Position ids, INT64 [batch, tokens]; null if positions start at zero. */
  readonly positions: string | null;
}

export interface AttentionInputs {
  /** The layer's input, [batch, tokens, hidden width]. */
  readonly hidden: string;
  /** The result of `prepareMask`. */
  readonly mask: string;
  /** Scores to add, [1, heads, tokens, tokens]; null for none. */
  readonly distances: string | null;
}

/** A set of operators from which the parts of a graph are built. Each method returns the name of its output. */
export interface OperatorSet {
  readonly opsets: Readonly<Record<string, number>>;
  /** Adds normalised embeddings, [batch, tokens, embedding width]. */
  embed(context: GraphContext, inputs: EmbeddingInputs): string;
  /** Converts the input mask, which is 1 for tokens and 0 for padding. Called once per graph. */
  prepareMask(context: GraphContext, mask: string): string;
  /**
   * Adds attention. Returns the concatenated results of the heads, [batch, tokens, hidden width], before their
   * projection.
   */
  attend(context: GraphContext, names: LayerNames, inputs: AttentionInputs): string;
  /** Adds a bias and then the activation. */
  activate(context: GraphContext, value: string, bias: string): string;
}

/** Score that is added for padding, so that its weight after the softmax is 0. */
export const maskedScore = -10_000;

/** Values of onnx.TensorProto.DataType, for Cast operators. */
export const castTypes = { FLOAT: 1, INT32: 6, INT64: 7, FLOAT16: 10 } as const;
