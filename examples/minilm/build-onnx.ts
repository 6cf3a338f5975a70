/**
 * Turns the published weights of MiniLM-L6-v2 (a BERT encoder in a safetensors file) into an ONNX graph, as
 *
 *   npx galatea convert <package's model directory> <model.onnx> --one-segment --rename=last_hidden_state=token_embeddings
 *
 * does. Inputs `input_ids` and `attention_mask`, INT64 [batch, tokens]; output `token_embeddings`, FP32 [batch, tokens, 384].
 */
import { convertEncoder, onnxFileBytesMax } from "@galatea/tools/conversion";

/** Reads `config.json` and `model.safetensors` in `source` and writes the graph to `target` atomically. */
export async function buildOnnx(source: string, target: string): Promise<void> {
  await convertEncoder({
    source,
    target,
    weights: "FLOAT",
    integers: "INT64",
    operators: "fused",
    opset: 17,
    oneSegment: true,
    pooler: false,
    names: new Map([["last_hidden_state", "token_embeddings"]]),
    fileBytesMax: onnxFileBytesMax,
    signal: new AbortController().signal,
  });
}
