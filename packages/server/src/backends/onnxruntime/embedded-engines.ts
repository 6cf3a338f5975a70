import { open } from "node:fs/promises";
import { InferenceError } from "@galatea/base";
import type { ExecutionProvider } from "../../native/index.ts";

/**
 * The operator that contains an engine built by TensorRT, or the name of the engine's file. Operator names are plain text in a model file.
 */
const operatorName = "EPContext";
const chunkBytes = 2 ** 20;

/**
 * Rejects a model file with TensorRT engines if TensorRT would run it in a process with other tenants' tensors, because an engine is code.
 * A file that contains the operator's name by chance is rejected too; the probability is 2^-72 for each byte.
 */
export async function rejectEmbeddedEngines(
  modelPath: string,
  modelName: string,
  providers: readonly ExecutionProvider[],
): Promise<void> {
  if (!providers.some(({ name }) => name === "tensorrt")) return;
  await using file = await open(modelPath);
  const window = Buffer.alloc(operatorName.length - 1 + chunkBytes);
  // The name may span two chunks, therefore the end of each chunk is searched again with the next one.
  let kept = 0;
  for (;;) {
    const { bytesRead } = await file.read(window, kept, chunkBytes);
    if (bytesRead === 0) return;
    const filled = window.subarray(0, kept + bytesRead);
    if (filled.includes(operatorName)) break;
    kept = Math.min(filled.length, operatorName.length - 1);
    filled.copy(window, 0, filled.length - kept);
  }
  throw new InferenceError(
    "UNSUPPORTED",
    `model '${modelName}' has operators '${operatorName}' and requests the Execution Accelerator 'tensorrt', which is not served here: ` +
      "an engine is code, and would run in a process that tenants share",
  );
}
