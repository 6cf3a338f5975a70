import assert from "node:assert/strict";
import { mkdtemp, mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ContainerRefusal } from "@galatea/runtimes/container-runtimes";
import { containerFrontEnd, containerPlan } from "./container-environment.ts";

const unspecified = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";

test("a Triton container's HTTP front end is configured by SAGEMAKER_TRITON_* variables, and invalid values are rejected", () => {
  assert.deepEqual(containerFrontEnd({}), {
    defaultModelName: unspecified,
    pingMode: "ready",
    language: { kind: "triton", inferenceType: "infer" },
    bodyBytesMax: null,
  });
  const env = {
    SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "add_sub",
    SAGEMAKER_TRITON_PING_MODE: "live",
    SAGEMAKER_TRITON_INFERENCE_TYPE: "generate_stream",
  };
  const language = { kind: "triton", inferenceType: "generate_stream" };
  const expected = { defaultModelName: "add_sub", pingMode: "live", language, bodyBytesMax: null };
  assert.deepEqual(containerFrontEnd(env), expected);
  for (const wrong of [{ SAGEMAKER_TRITON_PING_MODE: "maybe" }, { SAGEMAKER_TRITON_INFERENCE_TYPE: "Generate" }]) {
    assert.throws(() => containerFrontEnd(wrong), ContainerRefusal);
    assert.throws(
      () => containerPlan("tritonserver", { SAGEMAKER_MULTI_MODEL: "true", ...wrong }, "/opt/ml"),
      ContainerRefusal,
    );
  }
});

test("a multi-model container starts without models and with ping mode live; a single-model one loads the archive's only directory", async () => {
  const multi = containerPlan("tritonserver", { SAGEMAKER_MULTI_MODEL: "true" }, "/nowhere");
  assert.deepEqual([multi.loadModels, multi.defaultModelName, multi.pingMode], [[], unspecified, "live"]);
  const typed = { SAGEMAKER_MULTI_MODEL: "true", SAGEMAKER_TRITON_INFERENCE_TYPE: "generate" };
  assert.match(
    containerPlan("tritonserver", typed, "/nowhere").notes.join(),
    /SAGEMAKER_TRITON_INFERENCE_TYPE=generate has no effect/,
  );
  const mlRoot = await mkdtemp(join(tmpdir(), "galatea-plan-"));
  try {
    await mkdir(join(mlRoot, "model", "one"), { recursive: true });
    const single = containerPlan("tritonserver", {}, mlRoot);
    assert.deepEqual([single.loadModels, single.defaultModelName, single.pingMode], [["one"], "one", "ready"]);
    await mkdir(join(mlRoot, "model", "two"));
    assert.throws(() => containerPlan("tritonserver", {}, mlRoot), /No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided/);
    assert.throws(
      () => containerPlan("tritonserver", { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "x" }, mlRoot),
      /does not exist/,
    );
  } finally {
    await rm(mlRoot, { recursive: true });
  }
});
