import type { EncoderPlan, LayerNames } from "./encoder-plan.ts";
import type { EncoderWeights } from "./encoder-weights.ts";
import type { GraphBuilder } from "./graph-builder.ts";

/** What the parts of a graph are built from and with. */
export interface GraphContext {
  readonly plan: EncoderPlan;
  readonly graph: GraphBuilder;
  readonly weights: EncoderWeights;
}

export interface EmbeddingInputs {
  /** INT32 or INT64 [batch, tokens], as the graph's inputs are. */
  readonly ids: string;
  /** Null where all tokens are of the first segment. */
  readonly tokenTypes: string | null;
  /** INT64 [batch, tokens]; null where positions count from zero. */
  readonly positions: string | null;
}

export interface AttentionInputs {
  /** [batch, tokens, hidden width]. */
  readonly hidden: string;
  /** What `prepareMask` gave. */
  readonly mask: string;
  /** Added to the scores, [1, heads, tokens, tokens]; null where nothing is. */
  readonly distances: string | null;
}

/** The operators that a graph is made of, where there is a choice. Each gives the name of its output. */
export interface OperatorSet {
  readonly opsets: Readonly<Record<string, number>>;
  /** Normalised embeddings, [batch, tokens, embedding width]. */
  embed(context: GraphContext, inputs: EmbeddingInputs): string;
  /** Once in a graph, from the input: 1 for tokens, 0 for padding. */
  prepareMask(context: GraphContext, mask: string): string;
  /** What the heads gathered, [batch, tokens, hidden width], before its projection. */
  attend(context: GraphContext, names: LayerNames, inputs: AttentionInputs): string;
  /** The activation of `value` with `bias` added. */
  activate(context: GraphContext, value: string, bias: string): string;
}

/** Added to the score of padding: after the softmax its weight is 0. */
export const maskedScore = -10_000;

/** Numbers of onnx.TensorProto.DataType that casts name. */
export const castTypes = { FLOAT: 1, INT32: 6, INT64: 7, FLOAT16: 10 } as const;
