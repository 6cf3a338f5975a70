import { controlModels } from "./control-models.ts";
import type { ModelSource } from "./model-source.ts";
import { models } from "./models.ts";

const outOfMemory: ModelSource = {
  ...models.add_sub,
  program: null,
  files: {
    "1/model.py":
      'class TritonPythonModel:\n    def initialize(self, args):\n        raise MemoryError("no room")\n\n    def execute(self, requests):\n        return []\n',
  },
};

const named = (name: string, model: ModelSource): ModelSource => ({
  ...model,
  config: `name: "${name}"\n${model.config ?? ""}`,
});

/**
 * The archives that are unpacked in /opt/ml/models/<hash>/model before the multi-model cases: model directories by
 * their path in the archive.
 */
export const archives: Readonly<Record<string, Readonly<Record<string, ModelSource>>>> = {
  kservesuite1: { add_sub: models.add_sub },
  /** config.pbtxt in the archive's root. */
  kservesuite2: { ".": models.add_sub },
  kservesuite3: { add_sub: models.add_sub, chain: models.chain },
  kservesuite4: { raises: controlModels.raises_in_initialize },
  kservesuite5: { out_of_memory: outOfMemory },
  /** The name in config.pbtxt differs from the directory's. */
  kservesuite6: { add_sub: named("another", models.add_sub) },
  kservesuite7: { ".": named("another", models.add_sub) },
  kservesuite8: { add_sub: models.add_sub, chain: named("pipeline", models.chain) },
  /** The name of an ensemble's step must be its directory's, because it is not mapped. */
  /** A model that sends any number of responses. */
  kservesuite10: { streams: models.streams },
  kservesuite9: { add_sub: named("another", models.add_sub), chain: models.chain },
};
