import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { test } from "node:test";
import { ContainerRefusal } from "../container-kind.ts";
import { containerKinds, type ContainerKindName } from "../kinds.ts";
import { sparkExecution, xgboostExecution } from "./index.ts";

const start = (environment: Readonly<Record<string, string>> = {}, isMultiModel = false) => ({
  environment,
  isMultiModel,
  mlRoot: "/opt/ml",
});
const opened = (kind: ContainerKindName, environment: Readonly<Record<string, string>> = {}) =>
  containerKinds[kind].open(start(environment));

test("XGBoost's /execution-parameters has the 84 bytes that logs of SageMaker transform jobs on four processors show", () => {
  const text = xgboostExecution(start(), 4);
  assert.equal(text, '{"MaxConcurrentTransforms": 4, "BatchStrategy": "MULTI_RECORD", "MaxPayloadInMB": 6}');
  assert.equal(text.length, 84);
});

test("a multi-model XGBoost container returns /execution-parameters in the format of SageMaker's multi-model server", () => {
  assert.equal(
    xgboostExecution(start({}, true), 4),
    '{\n  "MaxConcurrentTransforms": 1,\n  "BatchStrategy": "MULTI_RECORD",\n  "MaxPayloadInMB": 6\n}',
  );
});

test("MAX_CONTENT_LENGTH limits bodies, and MaxPayloadInMB is its whole megabytes", () => {
  const environment = { MAX_CONTENT_LENGTH: "20971521" };
  assert.equal(JSON.parse(xgboostExecution(start(environment), 2)).MaxPayloadInMB, 20);
  assert.equal(opened("xgboost", environment).bodyBytesMax, 20_971_521);
  assert.equal(opened("xgboost").bodyBytesMax, null);
  assert.throws(() => opened("xgboost", { MAX_CONTENT_LENGTH: "6 MB" }), ContainerRefusal);
});

test("Spark ML's /execution-parameters is printed as Java prints it; linear learner has no /execution-parameters", () => {
  assert.equal(
    sparkExecution(start(), 8),
    '{"MaxConcurrentTransforms":8,"BatchStrategy":"SINGLE_RECORD","MaxPayloadInMB":5}',
  );
  const parameters = opened("sparkml-serving").codec.executionParameters;
  assert.ok(parameters !== null && parameters !== "model");
  assert.equal(JSON.parse(String(parameters.body)).MaxConcurrentTransforms, availableParallelism());
  assert.equal(opened("linear-learner").codec.executionParameters, null);
});
