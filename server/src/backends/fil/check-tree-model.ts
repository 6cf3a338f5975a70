import { join } from "node:path";
import type { ModelConfig } from "../../modelconfig/index.ts";
import { readTreeModel } from "./convert-model.ts";
import { readFilParameters } from "./fil-parameters.ts";
import { readTensors } from "./plan-answer.ts";

/** Reads a model without running it. Throws InferenceError where its load would, before ONNX Runtime sees anything of it. */
export async function checkTreeModel(versionDirectory: string, config: ModelConfig): Promise<void> {
  const parameters = readFilParameters(config);
  const asked = readTensors(config);
  await readTreeModel({ modelPath: join(versionDirectory, parameters.fileName), parameters, asked });
}
