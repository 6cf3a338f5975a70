/** What a dense layer does to its wide middle. */
export type Activation = "gelu" | "gelu-tanh" | "relu" | "silu" | "tanh";

/** Names of tensors, each a prefix of `.weight` and `.bias` where it is not said otherwise. */
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
  /** Null where sentences have no segments. */
  readonly tokenTypes: string | null;
  readonly norm: string;
  /** Between embeddings and layers of another width; null where it is the same. */
  readonly projection: string | null;
}

/**
 * An encoder of the family that BERT began, whoever published it: embeddings that are normalised; layers of self-attention and two dense
 * layers, each of the two followed by adding its input and normalising; an optional pooler over the first token.
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
  /** Where positions count the tokens that are not this one, beginning behind its number; null where they count from zero. */
  readonly paddingId: number | null;
  /** Zero where there are no segments. */
  readonly tokenTypeCount: number;
  readonly embeddings: EmbeddingNames;
  /** In the order in which they run; a layer may run several times. */
  readonly layers: readonly LayerNames[];
  /** A table, [32, heads], of what the distance of two tokens adds to their scores; null where nothing is added. */
  readonly distances: string | null;
  readonly pooler: string;
}

/** The tokens that a sentence may have. */
export function tokensMax({ positionCount, paddingId }: EncoderPlan): number {
  return positionCount - (paddingId === null ? 0 : paddingId + 1);
}
