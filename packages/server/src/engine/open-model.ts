import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backends/index.ts";
import { checkConfig, rejectUnsupported, type ModelConfig } from "../modelconfig/index.ts";

export interface OpenModelOptions {
  readonly source: ModelSource;
  /** The configuration as found on disk. */
  readonly config: ModelConfig;
  readonly autoComplete: boolean;
}

/** Completes and checks a configuration, and loads the model. */
export async function openModel(
  backend: Backend,
  { source, config: found, autoComplete }: OpenModelOptions,
  context: LoadContext,
): Promise<{ readonly config: ModelConfig; readonly model: LoadedModel }> {
  const config = autoComplete ? await backend.complete(source, found, context) : found;
  rejectUnsupported(config);
  checkConfig(config);
  return { config, model: await backend.load(source, config, context) };
}
