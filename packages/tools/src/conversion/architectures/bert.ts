import type { ConfigReader } from "../config-reader.ts";
import type { EmbeddingNames, EncoderPlan, LayerNames } from "../encoder-plan.ts";

/** Returns the names of a layer's tensors in BERT and in models that use BERT's modules. */
export function bertLayer(index: number): LayerNames {
  const layer = `encoder.layer.${index}`;
  return {
    query: `${layer}.attention.self.query`,
    key: `${layer}.attention.self.key`,
    value: `${layer}.attention.self.value`,
    projected: `${layer}.attention.output.dense`,
    attentionNorm: `${layer}.attention.output.LayerNorm`,
    widened: `${layer}.intermediate.dense`,
    narrowed: `${layer}.output.dense`,
    outputNorm: `${layer}.output.LayerNorm`,
  };
}

export const bertEmbeddings: EmbeddingNames = {
  words: "embeddings.word_embeddings.weight",
  positions: "embeddings.position_embeddings.weight",
  tokenTypes: "embeddings.token_type_embeddings.weight",
  norm: "embeddings.LayerNorm",
  projection: null,
};

export function bertPlan(architecture: string, config: ConfigReader): EncoderPlan {
  config.only("position_embedding_type", "absolute");
  config.only("is_decoder", false);
  config.only("add_cross_attention", false);
  const hiddenWidth = config.size("hidden_size", 768);
  return {
    architecture,
    vocabularySize: config.size("vocab_size", 30_522),
    hiddenWidth,
    innerWidth: config.size("intermediate_size", 3072),
    embeddingWidth: hiddenWidth,
    headCount: config.size("num_attention_heads", 12),
    activation: config.activation("hidden_act", "gelu"),
    epsilon: config.epsilon("layer_norm_eps", 1e-12),
    positionCount: config.size("max_position_embeddings", 512, 2),
    paddingId: null,
    tokenTypeCount: config.size("type_vocab_size", 2),
    embeddings: bertEmbeddings,
    layers: Array.from({ length: config.count("num_hidden_layers", 12) }, (_, index) => bertLayer(index)),
    distances: null,
    pooler: "pooler.dense",
  };
}

/**
 * Returns the plan of RoBERTa. Its position ids count only the tokens that are not padding, and start at `pad_token_id`
 * + 1.
 */
export function robertaPlan(architecture: string, config: ConfigReader): EncoderPlan {
  return { ...bertPlan(architecture, config), paddingId: config.size("pad_token_id", 1, 0) };
}

/** Returns the plan of ELECTRA. Its embeddings may be narrower than its layers, and its discriminator has no pooler. */
export function electraPlan(architecture: string, config: ConfigReader): EncoderPlan {
  const plan = bertPlan(architecture, config);
  const embeddingWidth = config.size("embedding_size", 128);
  const projection = embeddingWidth === plan.hiddenWidth ? null : "embeddings_project";
  return { ...plan, embeddingWidth, embeddings: { ...bertEmbeddings, projection } };
}
