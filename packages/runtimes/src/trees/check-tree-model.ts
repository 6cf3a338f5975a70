import { join } from "node:path";
import type { ModelConfig } from "@galatea/server/modelconfig";
import { readFilParameters } from "./fil-parameters.ts";
import { readTensors } from "./plan-answer.ts";
import { readTreeModel } from "./read-tree-model.ts";

/** Reads a model without running it. Throws InferenceError where its load would. */
export async function checkTreeModel(versionDirectory: string, config: ModelConfig): Promise<void> {
  const parameters = readFilParameters(config);
  const asked = readTensors(config);
  await readTreeModel({ modelPath: join(versionDirectory, parameters.fileName), parameters, asked, deskCount: 1 });
}
