/** The activation in the wide middle of a dense layer. */
export type Activation = "gelu" | "gelu-tanh" | "relu" | "silu" | "tanh";

/** Names of tensors, each a prefix of `.weight` and `.bias` unless noted. */
export interface LayerNames {
  readonly query: string;
  readonly key: string;
  readonly value: string;
  readonly projected: string;
  readonly attentionNorm: string;
  readonly widened: string;
  readonly narrowed: string;
  readonly outputNorm: string;
}

export interface EmbeddingNames {
  readonly words: string;
  readonly positions: string;
  /** Null without segments. */
  readonly tokenTypes: string | null;
  readonly norm: string;
  /** Between embeddings and layers of different widths; null for equal widths. */
  readonly projection: string | null;
}

/**
 * An encoder of the BERT family: normalised embeddings; layers of self-attention and two dense layers, each followed by
 * adding its input and normalising; an optional pooler over the first token.
 */
export interface EncoderPlan {
  readonly architecture: string;
  readonly vocabularySize: number;
  readonly hiddenWidth: number;
  readonly innerWidth: number;
  readonly embeddingWidth: number;
  readonly headCount: number;
  readonly activation: Activation;
  readonly epsilon: number;
  readonly positionCount: number;
  /** The padding token's id if positions count the other tokens, starting after it; null if they start at zero. */
  readonly paddingId: number | null;
  /** Zero without segments. */
  readonly tokenTypeCount: number;
  readonly embeddings: EmbeddingNames;
  /** In the order of execution; a layer may run several times. */
  readonly layers: readonly LayerNames[];
  /** A table, [32, heads], of scores for the distance of two tokens; null if nothing is added. */
  readonly distances: string | null;
  readonly pooler: string;
}

/** Returns the maximum number of tokens of a sentence. */
export function tokensMax({ positionCount, paddingId }: EncoderPlan): number {
  return positionCount - (paddingId === null ? 0 : paddingId + 1);
}
