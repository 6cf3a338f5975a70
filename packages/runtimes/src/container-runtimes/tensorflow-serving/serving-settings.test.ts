import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ContainerRefusal } from "../container-kind.ts";
import { containerKinds } from "../kinds.ts";
import { servingSettings } from "./serving-settings.ts";

const settings = (environment: Readonly<Record<string, string>>) =>
  servingSettings({ environment, isMultiModel: false, mlRoot: "/opt/ml" });

test("without variables, an archive has one process, no batching and no own time limit", () => {
  const { instanceCount, batching, callMsMax, notes } = settings({});
  assert.deepEqual([instanceCount, batching, callMsMax, notes], [1, null, null, []]);
});

test("SAGEMAKER_TFS_ENABLE_BATCHING enables batching with the defaults of SageMaker's container, which further variables replace", () => {
  const on = { SAGEMAKER_TFS_ENABLE_BATCHING: "True" };
  assert.deepEqual(settings(on).batching, { rowsMax: 8, delayUs: 1000, queuedMax: 8 * availableParallelism() });
  const said = {
    ...on,
    SAGEMAKER_TFS_MAX_BATCH_SIZE: "32",
    SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS: "0",
    SAGEMAKER_TFS_MAX_ENQUEUED_BATCHES: "5",
  };
  assert.deepEqual(settings(said).batching, { rowsMax: 32, delayUs: 0, queuedMax: 160 });
  assert.equal(settings({ ...said, SAGEMAKER_TFS_MAX_ENQUEUED_BATCHES: "100000000" }).batching?.queuedMax, 100_000);
  assert.equal(settings({ ...said, SAGEMAKER_TFS_ENABLE_BATCHING: "false" }).batching, null);
  assert.throws(() => settings({ SAGEMAKER_TFS_ENABLE_BATCHING: "yes" }), /must be 'true' or 'false'/);
});

test("variables set processes, threads and time-outs; the log notes variables without effect", () => {
  const found = settings({
    SAGEMAKER_TFS_INSTANCE_COUNT: "2",
    SAGEMAKER_GUNICORN_WORKERS: "3",
    SAGEMAKER_TFS_INTRA_OP_PARALLELISM: "4",
    SAGEMAKER_TFS_INTER_OP_PARALLELISM: "0",
    SAGEMAKER_GUNICORN_TIMEOUT_SECONDS: "90",
    SAGEMAKER_TFS_WAIT_TIME_SECONDS: "7",
    SAGEMAKER_TFS_NUM_BATCH_THREADS: "16",
    SAGEMAKER_TFS_FRACTIONAL_GPU_MEM_MARGIN: "0.2",
  });
  const { instanceCount, intraThreads, interThreads, callMsMax, waitSeconds, notes } = found;
  assert.deepEqual([instanceCount, intraThreads, interThreads, callMsMax, waitSeconds], [3, 4, 0, 90_000, 7]);
  assert.deepEqual(
    notes.map((note) => note.split(" ")[0]),
    ["SAGEMAKER_TFS_NUM_BATCH_THREADS", "SAGEMAKER_TFS_FRACTIONAL_GPU_MEM_MARGIN"],
  );
});

for (const [name, value] of [
  ["SAGEMAKER_TFS_INSTANCE_COUNT", "0"],
  ["SAGEMAKER_TFS_MAX_BATCH_SIZE", "1e3"],
  ["SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS", "-1"],
  ["SAGEMAKER_MULTI_MODEL_UNIVERSAL_BUCKET", "a-bucket"],
] as const)
  test(`an invalid or unsupported value makes the container's start fail: ${name}=${value}`, () => {
    assert.throws(() => settings({ [name]: value }), ContainerRefusal);
  });

test("packages of requirements.txt are installed if the archive has a script and no code/lib directory", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "serving-container-"));
  t.after(() => rm(directory, { recursive: true }));
  const requested: (readonly string[])[] = [];
  const opened = containerKinds["tensorflow-serving"].open({ environment: {}, mlRoot: "/", isMultiModel: false });
  const packagesDirectory = async () => {
    const [model] = await opened.modelsIn(
      directory,
      (_, packages) => (requested.push(packages), Promise.resolve("/p")),
    );
    const { parameters } = model.config as { parameters: Record<string, { string_value: string }> };
    return parameters["packages_dir"]?.string_value;
  };
  await mkdir(join(directory, "code"));
  await writeFile(join(directory, "code/requirements.txt"), "pillow\n");
  assert.equal(await packagesDirectory(), "");
  await writeFile(join(directory, "code/inference.py"), "");
  assert.equal(await packagesDirectory(), "/p");
  await mkdir(join(directory, "code/lib"));
  assert.equal(await packagesDirectory(), "");
  assert.deepEqual(requested, [["pillow"]]);
});
