import type { ConfigReader } from "../config-reader.ts";
import type { EncoderPlan } from "../encoder-plan.ts";
import { bertEmbeddings, bertLayer, robertaPlan } from "./bert.ts";

/**
 * Returns the plan of MPNet. It has RoBERTa's positions, no segments, and a bias by token distance that all layers
 * share.
 */
export function mpnetPlan(architecture: string, config: ConfigReader): EncoderPlan {
  // `transformers` sizes the table by this number, but always assigns distances to 32 buckets. With another number, its
  // results would differ.
  config.only("relative_attention_num_buckets", 32);
  const plan = robertaPlan(architecture, config);
  return {
    ...plan,
    vocabularySize: config.size("vocab_size", 30_527),
    tokenTypeCount: 0,
    embeddings: { ...bertEmbeddings, tokenTypes: null },
    layers: plan.layers.map((_, index) => {
      const attention = `encoder.layer.${index}.attention`;
      return {
        ...bertLayer(index),
        query: `${attention}.attn.q`,
        key: `${attention}.attn.k`,
        value: `${attention}.attn.v`,
        projected: `${attention}.attn.o`,
        attentionNorm: `${attention}.LayerNorm`,
      };
    }),
    distances: "encoder.relative_attention_bias.weight",
  };
}
