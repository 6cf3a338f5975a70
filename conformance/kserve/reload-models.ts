import { ensemble, pythonConfig, python, type ModelSource, type PythonOptions } from "./model-source.ts";
import { models } from "./models.ts";

const versioned: PythonOptions = { inputs: [["IN", "INT32", [1]]], outputs: [["OUT", "STRING", [1]]] };
const over = (model: string) => ensemble(versioned, [{ model, inputs: { IN: "IN" }, outputs: { OUT: "OUT" } }]);

/** Models that change, and ensembles of them. */
export const reloadModels = {
  versions_latest: models.versions_latest,
  over_latest: over("versions_latest"),
  over_over: over("over_latest"),
  failing: { config: pythonConfig(versioned), program: null, files: { "1/model.py": "def broken(\n" } },
  over_failing: over("failing"),
  second_broken: python(
    "version.py",
    { ...versioned, more: "version_policy { all {} }" },
    { files: { "2/model.py": "def broken(\n" } },
  ),
  no_such_version: python("version.py", { ...versioned, more: "version_policy { specific { versions: [9] } }" }),
} satisfies Record<string, ModelSource>;
