import assert from "node:assert/strict";
import { test } from "node:test";
import { environmentVariableError } from "./environment-variables.ts";

test("a variable that acts on the server's own process is rejected by name, with the reason", () => {
  for (const name of [
    "NODE_OPTIONS",
    "NODE_EXTRA_CA_CERTS",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "PATH",
    "BASH_ENV",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PIP_INDEX_URL",
    "UV_INDEX_URL",
    "OPENSSL_CONF",
    "GALATEA_DATA",
    "SAGEMAKER_BIND_TO_PORT",
  ])
    assert.match(
      environmentVariableError(name, "x") ?? "",
      new RegExp(`^Environment variable ${name} is not allowed: .+\\.$`),
      name,
    );
});

test("variables that configure models are allowed", () => {
  for (const [name, value] of Object.entries({
    PYTHONPATH: "/opt/ml/model/code",
    PYTHONUNBUFFERED: "1",
    OMP_NUM_THREADS: "1",
    MALLOC_ARENA_MAX: "2",
    NODE_ENV: "production",
    HOME: "/tmp",
    ENV: "prod",
    HF_HOME: "/tmp",
    HTTPS_PROXY: "http://proxy:1",
    AWS_ENDPOINT_URL: "http://elsewhere",
    GALATEA_MODEL_MEMORY_BYTES: "1",
    SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "m",
    SAGEMAKER_TRITON_ALLOW_METRICS: "false",
    SAGEMAKER_TRITON_ADDITIONAL_ARGS: "--log-verbose=1 --model-load-thread-count=2",
  }))
    assert.equal(environmentVariableError(name, value), null, name);
});

test("a variable that would open a listener is rejected", () => {
  assert.match(environmentVariableError("SAGEMAKER_TRITON_ALLOW_METRICS", "true") ?? "", /own socket only/);
  for (const args of [
    "--http-port=9000",
    "--allow-http true",
    "--metrics-address 0.0.0.0",
    "--sagemaker-socket=/tmp/x",
    "--http-add=0.0.0.0",
  ])
    assert.match(environmentVariableError("SAGEMAKER_TRITON_ADDITIONAL_ARGS", args) ?? "", /^Argument -/, args);
});

test("an argument that chooses programs, files or repositories or weakens isolation is rejected, also by an abbreviated name", () => {
  for (const argument of [
    "--python=/opt/ml/model/python",
    "--pyth=/opt/ml/model/python",
    "--python-preimport=os",
    "--worker-confinement=processes",
    "--worker-conf=processes",
    "--worker-users=none",
    "--model-repository=/",
    "--data=/tmp",
    "--log-fil=/tmp/x",
    "--memory-budget-bytes=1",
    "-x",
    "--",
  ]) {
    const text = environmentVariableError("SAGEMAKER_TRITON_ADDITIONAL_ARGS", `--log-verbose 1\n ${argument}`) ?? "";
    assert.ok(text.startsWith(`Argument ${argument.split("=")[0]} is not allowed in `), argument);
  }
});
