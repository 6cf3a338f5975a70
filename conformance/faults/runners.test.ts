/** Python-based backends: one program runs all models whose configuration names its folder. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sendRequest, errorOf, infer, load, outputOf } from "./http-client.ts";
import { openServing, type Serving } from "./serving.ts";

const program = `import json, os, sys
import helper
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_STRING", "dims": [1]})
        config.set_max_batch_size(0)
        return config

    def initialize(self, args):
        self.name = args["model_name"]
        path = os.path.join(args["model_repository"], args["model_version"], "weights.txt")
        self.weights = open(path).read()

    def execute(self, requests):
        told = [self.name, self.weights, helper.WORD, os.path.basename(os.path.dirname(__file__)), __name__, os.listdir(pb_utils.get_model_dir())]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([json.dumps(told)], object))]) for _ in requests]
`;

let directory: string;
let serving: Serving;
let port: number;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-backends-"));
  await mkdir(join(directory, "words"));
  await writeFile(join(directory, "words", "model.py"), program);
  await writeFile(join(directory, "words", "helper.py"), 'WORD = "helped"\n');
  await mkdir(join(directory, "empty"));
  serving = await openServing({
    flags: ["--model-control-mode=explicit", `--backend-directory=${directory}`],
    write: async ({ repository }) => {
      for (const [name, backend] of [
        ["first", "words"],
        ["second", "words"],
        ["of_empty", "empty"],
        ["of_nobody", "nobody"],
        ["of_path", "./words"],
      ] as const) {
        await mkdir(join(repository, name, "1"), { recursive: true });
        await writeFile(join(repository, name, "config.pbtxt"), `backend: "${backend}"\n`);
        await writeFile(join(repository, name, "1", "weights.txt"), `weights of ${name}`);
      }
    },
  });
  port = serving.server.httpPort;
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const body = JSON.stringify({ inputs: [{ name: "IN", datatype: "FP32", shape: [1], data: [1] }] });

test("the models of a python-based backend run its program, each over its own files", async () => {
  for (const name of ["first", "second"]) {
    assert.equal((await load(port, name)).status, 200);
    const [text] = outputOf(await infer(port, name, body), "OUT");
    assert.deepEqual(JSON.parse(String(text)), [
      name,
      `weights of ${name}`,
      "helped",
      "words",
      "model",
      ["weights.txt"],
    ]);
  }
  const { body: config } = await sendRequest(port, { path: "/v2/models/first/config" });
  assert.equal((JSON.parse(config.toString()) as { backend: string }).backend, "words");
});

test("a backend without a program, or with a path as its name, is rejected", async () => {
  for (const name of ["of_empty", "of_nobody", "of_path"])
    assert.match(errorOf(await load(port, name), 400), /unable to find backend library for backend '/);
});
