import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backends/index.ts";
import { checkConfig, refuseUnbuilt, type ModelConfig } from "../modelconfig/index.ts";

export interface OpenOrder {
  readonly source: ModelSource;
  /** The configuration as found on disk. */
  readonly config: ModelConfig;
  readonly autoComplete: boolean;
}

/** Completes a configuration, checks it, and loads the model. */
export async function openModel(
  backend: Backend,
  { source, config: found, autoComplete }: OpenOrder,
  context: LoadContext,
): Promise<{ readonly config: ModelConfig; readonly model: LoadedModel }> {
  const config = autoComplete ? await backend.complete(source, found, context) : found;
  refuseUnbuilt(config);
  checkConfig(config);
  return { config, model: await backend.load(source, config, context) };
}
