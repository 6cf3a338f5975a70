/** The activation function between the two dense layers of a layer. */
export type Activation = "gelu" | "gelu-tanh" | "relu" | "silu" | "tanh";

/** Names of a layer's tensors. Each is a prefix of `.weight` and `.bias` unless noted. */
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
  /** The table of segment embeddings; null if the encoder has no segments. */
  readonly tokenTypes: string | null;
  readonly norm: string;
  /** The dense layer from the embedding width to the hidden width; null if both are equal. */
  readonly projection: string | null;
}

/**
 * An encoder like BERT. It has normalised embeddings, then layers of self-attention and two dense layers; after each of
 * these, its input is added and the sum is normalised. An optional pooler follows over the first token.
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
  /**
   * The padding token's id, after which position ids start if they count only the other tokens. Null if positions start
   * at zero.
   */
  readonly paddingId: number | null;
  /** The number of segments; zero if the encoder has none. */
  readonly tokenTypeCount: number;
  readonly embeddings: EmbeddingNames;
  /** The layers in the order of execution. A layer may run several times. */
  readonly layers: readonly LayerNames[];
  /** A table of scores for the distance of two tokens, [32, heads]; null if the encoder has none. */
  readonly distances: string | null;
  readonly pooler: string;
}

/** Returns the maximum number of tokens in a sentence. */
export function tokensMax({ positionCount, paddingId }: EncoderPlan): number {
  return positionCount - (paddingId === null ? 0 : paddingId + 1);
}
