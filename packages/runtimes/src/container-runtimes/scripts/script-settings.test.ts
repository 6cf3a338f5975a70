import assert from "node:assert/strict";
import { mkdtemp, mkdir, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ContainerRefusal } from "../container-kind.ts";
import { containerKinds } from "../kinds.ts";
import { scriptSettings } from "./script-settings.ts";

const settings = (environment: Readonly<Record<string, string>>, isMultiModel = false) =>
  scriptSettings({ environment, isMultiModel, mlRoot: "/opt/ml" });

test("without variables, a model has one worker for each processor (one in a multi-model container) and no own time limit", () => {
  const { workerCount, batchSizeMax, callMsMax, notes } = settings({});
  assert.deepEqual([workerCount, batchSizeMax, callMsMax, notes], [availableParallelism(), 1, null, []]);
  assert.equal(settings({}, true).workerCount, 1);
});

test("the variables of SageMaker's inference toolkit and model servers set workers, time-outs, batches and body limits", () => {
  assert.equal(settings({ SAGEMAKER_MODEL_SERVER_WORKERS: "3" }).workerCount, 3);
  assert.equal(settings({ SAGEMAKER_TS_MAX_WORKERS: "4" }).workerCount, 4);
  assert.equal(settings({ SAGEMAKER_NUM_MODEL_WORKERS: "5" }, true).workerCount, 5);
  assert.equal(settings({ SAGEMAKER_MODEL_SERVER_TIMEOUT: "90" }).callMsMax, 90_000);
  assert.equal(
    settings({ SAGEMAKER_MODEL_SERVER_TIMEOUT: "90", SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS: "7" }).callMsMax,
    7000,
  );
  const { batchSizeMax, batchDelayUs } = settings({ SAGEMAKER_TS_BATCH_SIZE: "8", SAGEMAKER_TS_MAX_BATCH_DELAY: "5" });
  assert.deepEqual([batchSizeMax, batchDelayUs], [8, 5000]);
  assert.equal(settings({}).bodyBytesMax, null);
  assert.equal(settings({ SAGEMAKER_MAX_PAYLOAD_IN_MB: "20" }).bodyBytesMax, 20 * 2 ** 20);
  assert.throws(() => settings({ SAGEMAKER_MAX_PAYLOAD_IN_MB: "0" }), ContainerRefusal);
  assert.match(settings({ SAGEMAKER_MODEL_SERVER_VMARGS: "-Xmx1g" }).notes.join(), /accepted without effect/);
});

for (const value of ["0", "-1", "many", "1.5", "257", "99999999999"])
  test(`an invalid number of workers makes the container's start fail: ${value}`, () => {
    assert.throws(() => settings({ SAGEMAKER_MODEL_SERVER_WORKERS: value }), ContainerRefusal);
  });

test("a script from S3 is read from the directory to which the platform downloaded it; without that directory the start fails", async (t) => {
  const mlRoot = await mkdtemp(join(tmpdir(), "script-container-"));
  t.after(() => rm(mlRoot, { recursive: true }));
  const environment = { SAGEMAKER_SUBMIT_DIRECTORY: "s3://bucket/sourcedir.tar.gz" };
  const open = () => containerKinds["scikit-learn"].open({ environment, mlRoot, isMultiModel: false });
  assert.throws(open, ContainerRefusal);
  await mkdir(join(mlRoot, "code"));
  const opened = open();
  assert.deepEqual(opened.readPaths, [join(mlRoot, "code")]);
  const [model] = await opened.modelsIn(join(mlRoot, "model"), () => assert.fail("no package must be installed"));
  const { parameters } = model.config as { parameters: Record<string, { string_value: string }> };
  assert.equal(parameters["code_dir"]?.string_value, join(mlRoot, "code"));
});
