import assert from "node:assert/strict";
import { test } from "node:test";
import sagemaker from "../../spec/gen/sagemaker.json" with { type: "json" };
import { adviceFor } from "../../wire/index.ts";
import { unsupportedOperations } from "./unsupported-operations.ts";

test("every operation of SageMaker that is not implemented has a row with advice, and every row has operations", () => {
  const without = sagemaker.otherOperations.filter((name) => adviceFor(name, unsupportedOperations) === null);
  assert.deepEqual(without, []);
  const used = new Set(
    sagemaker.otherOperations.map((name) => unsupportedOperations.find(({ named }) => named.test(name))),
  );
  for (const row of unsupportedOperations) assert.ok(used.has(row), row.area);
});

test("an unsupported operation is assigned to the area that it belongs to", () => {
  const areaOf = (name: string) => unsupportedOperations.find(({ named }) => named.test(name))?.area;
  assert.equal(areaOf("CreateTrainingJob"), "training");
  assert.equal(areaOf("CreateHyperParameterTuningJob"), "tuning of hyperparameters");
  assert.equal(areaOf("CreateAutoMLJobV2"), "AutoML");
  assert.equal(areaOf("CreateProcessingJob"), "processing jobs");
  assert.equal(areaOf("CreateInferenceExperiment"), "shadow tests");
  assert.equal(areaOf("ListInferenceExperiments"), "shadow tests");
  assert.match(adviceFor("CreateInferenceExperiment", unsupportedOperations) ?? "", /ShadowProductionVariants/);
  assert.equal(areaOf("CreatePipeline"), "workflows");
  assert.equal(areaOf("BatchAddClusterNodes"), "clusters");
  assert.equal(areaOf("CreatePresignedDomainUrl"), "notebooks, Studio and its applications");
});
