/** The environment of model code: all variables of a server, and only the listed ones of a platform. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { passedEnvironment } from "../../packages/galatea/src/app/passed-environment.ts";
import { faultyRequest, infer, textOf } from "./http-client.ts";
import { faultyConfig, writeFaultyModel } from "./faulty-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform } from "./platform.ts";
import { openServing } from "./serving.ts";
import { tarball } from "./tarball.ts";

/** Responds with its whole environment. */
const program = `import json, os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        text = np.array([json.dumps(dict(os.environ))], np.object_)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TEXT", text)]) for _ in requests]
`;

type Environment = Readonly<Record<string, string | undefined>>;

const seen = (text: string) => JSON.parse(text) as Environment;
const chosen = (environment: Environment, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, environment[name]]));

test("models see the server's whole environment except the variables for its own Node", async () => {
  const input = {
    MY_SETTING: "7",
    OMP_NUM_THREADS: "9",
    TZ: "Asia/Tokyo",
    CUDA_VISIBLE_DEVICES: "",
    AWS_REGION: "us-east-1",
    lower: "é",
  };
  const ours = { NODE_OPTIONS: "--no-warnings", UV_THREADPOOL_SIZE: "6" };
  await using serving = await openServing({
    flags: ["--model-control-mode=explicit", "--load-model=m"],
    write: ({ repository }) => writeFaultyModel(repository, "m", { text: program }),
    env: { ...input, ...ours },
  });
  const environment = seen(textOf(await infer(serving.server.httpPort, "m", faultyRequest("tell"))));
  assert.deepEqual(chosen(environment, Object.keys(input)), input);
  for (const name of [...Object.keys(ours), "NODE_COMPILE_CACHE"]) assert.equal(environment[name], undefined, name);
});

test("CreateModel's Environment reaches model code; the platform's own variables do not", async () => {
  const input = {
    MY_SETTING: "of the model",
    OMP_NUM_THREADS: "3",
    TZ: "Asia/Tokyo",
    SAGEMAKER_PROGRAM: "inference.py",
  };
  await using platform = await Platform.open();
  await platform.s3.send(
    new PutObjectCommand({
      Bucket: bucket,
      Key: "single.tar.gz",
      Body: tarball([
        { path: "m/config.pbtxt", body: faultyConfig },
        { path: "m/1/model.py", body: program },
      ]),
    }),
  );
  await createEndpoint(platform, {
    name: "settings",
    modelDataUrl: `s3://${bucket}/single.tar.gz`,
    environment: input,
  });
  await endpointIs(platform, "settings", "InService");
  // A list of processes shows the endpoint of the container.
  const [server = 0] = platform.servers();
  assert.match(readFileSync(join("/proc", String(server), "cmdline"), "utf8"), /\0--id=settings\/all\/[\w-]+\0/);
  const response = await invoke(platform, "settings", null, faultyRequest("tell"));
  const { outputs } = JSON.parse(response) as { outputs: { data: string[] }[] };
  const environment = seen(outputs[0]?.data[0] ?? "");
  assert.deepEqual(chosen(environment, Object.keys(input)), input);
  // A tenant has its own directories for files. It does not get the platform's compile cache.
  assert.equal(environment["HOME"], environment["TMPDIR"]);
  assert.notEqual(environment["HOME"], process.env["HOME"]);
  assert.ok(readFileSync(join("/proc", String(platform.pid), "environ"), "utf8").includes("NODE_COMPILE_CACHE="));
  assert.equal(environment["NODE_COMPILE_CACHE"], undefined);
});

test("containers get the platform's paths, language, time zone and proxies, and none of its secrets", () => {
  const passed = {
    PATH: "/bin",
    HOME: "/root",
    TZ: "Asia/Tokyo",
    NODE_COMPILE_CACHE: "/cache",
    http_proxy: "http://proxy:1",
    https_proxy: "http://proxy:2",
    ALL_PROXY: "http://proxy:3",
    all_proxy: "http://proxy:4",
    no_proxy: "localhost",
    PIP_INDEX_URL: "http://index",
  };
  const kept = { AWS_SECRET_ACCESS_KEY: "s", MY_SETTING: "x", NODE_OPTIONS: "--inspect", UV_THREADPOOL_SIZE: "8" };
  assert.deepEqual(passedEnvironment({ ...passed, ...kept, ABSENT: undefined }), passed);
});
