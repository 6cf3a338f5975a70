import type { ConfigReader } from "../config-reader.ts";
import { ConversionError } from "../conversion-error.ts";
import type { EncoderPlan, LayerNames } from "../encoder-plan.ts";
import { bertEmbeddings } from "./bert.ts";

/**
 * Returns the plan of ALBERT. Its embeddings are narrower than its layers, and it has groups of layers, each of which
 * runs several times.
 */
export function albertPlan(architecture: string, config: ConfigReader): EncoderPlan {
  config.only("position_embedding_type", "absolute");
  const depth = config.count("num_hidden_layers", 12);
  const groupCount = config.count("num_hidden_groups", 1);
  const innerCount = config.count("inner_group_num", 1);
  if (groupCount > depth) throw new ConversionError(`config.json has ${groupCount} groups of ${depth} layers`);
  return {
    architecture,
    vocabularySize: config.size("vocab_size", 30_000),
    hiddenWidth: config.size("hidden_size", 4096),
    innerWidth: config.size("intermediate_size", 16_384),
    embeddingWidth: config.size("embedding_size", 128),
    headCount: config.size("num_attention_heads", 64),
    activation: config.activation("hidden_act", "gelu_new"),
    epsilon: config.epsilon("layer_norm_eps", 1e-12),
    positionCount: config.size("max_position_embeddings", 512, 2),
    paddingId: null,
    tokenTypeCount: config.size("type_vocab_size", 2),
    embeddings: { ...bertEmbeddings, projection: "encoder.embedding_hidden_mapping_in" },
    layers: Array.from({ length: depth * innerCount }, (_, index) => {
      const group = Math.floor(Math.floor(index / innerCount) / (depth / groupCount));
      return albertLayer(group, index % innerCount);
    }),
    distances: null,
    pooler: "pooler",
  };
}

function albertLayer(group: number, inner: number): LayerNames {
  const layer = `encoder.albert_layer_groups.${group}.albert_layers.${inner}`;
  return {
    query: `${layer}.attention.query`,
    key: `${layer}.attention.key`,
    value: `${layer}.attention.value`,
    projected: `${layer}.attention.dense`,
    attentionNorm: `${layer}.attention.LayerNorm`,
    widened: `${layer}.ffn`,
    narrowed: `${layer}.ffn_output`,
    outputNorm: `${layer}.full_layer_layer_norm`,
  };
}
