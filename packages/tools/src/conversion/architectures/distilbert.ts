import type { ConfigReader } from "../config-reader.ts";
import type { EncoderPlan } from "../encoder-plan.ts";
import { bertEmbeddings } from "./bert.ts";

/** Returns the plan of DistilBERT, which has no segments, no pooler, and different names of tensors. */
export function distilbertPlan(architecture: string, config: ConfigReader): EncoderPlan {
  const hiddenWidth = config.size("dim", 768);
  return {
    architecture,
    vocabularySize: config.size("vocab_size", 30_522),
    hiddenWidth,
    innerWidth: config.size("hidden_dim", 3072),
    embeddingWidth: hiddenWidth,
    headCount: config.size("n_heads", 12),
    activation: config.activation("activation", "gelu"),
    epsilon: 1e-12,
    positionCount: config.size("max_position_embeddings", 512, 2),
    paddingId: null,
    tokenTypeCount: 0,
    embeddings: { ...bertEmbeddings, tokenTypes: null },
    layers: Array.from({ length: config.count("n_layers", 6) }, (_, index) => {
      const layer = `transformer.layer.${index}`;
      return {
        query: `${layer}.attention.q_lin`,
        key: `${layer}.attention.k_lin`,
        value: `${layer}.attention.v_lin`,
        projected: `${layer}.attention.out_lin`,
        attentionNorm: `${layer}.sa_layer_norm`,
        widened: `${layer}.ffn.lin1`,
        narrowed: `${layer}.ffn.lin2`,
        outputNorm: `${layer}.output_layer_norm`,
      };
    }),
    distances: null,
    pooler: "pooler.dense",
  };
}
