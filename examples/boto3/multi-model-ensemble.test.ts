import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "../../conformance/sagemaker/scripted-platform.ts";

const program = fileURLToPath(new URL("multi_model_ensemble.py", import.meta.url));

let platform: ScriptedPlatform;

const tensor = (field: "input" | "output", name: string, type: string, dims: string) =>
  `${field} { name: "${name}" data_type: ${type} dims: [ ${dims} ] }\n`;
const config = (head: string, input: string, output: string) => `${head}\nmax_batch_size: 8\n${input}${output}`;
const model = (input: string, output: string, type: string, expression: string) => `
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "${input}").as_numpy()
            y = np.ascontiguousarray(${expression}, dtype=${type})
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("${output}", y)]))
        return responses
`;
const step = (name: string, input: string, output: string) =>
  `step { model_name: "${name}" model_version: -1 input_map { key: "X" value: "${input}" } output_map { key: "Y" value: "${output}" } }\n`;

/** A sentence's embedding here: how often each letter from a to z is in it, as a vector of length one. */
const letters = "[[row[0].lower().count(b'%c' % each) for each in range(97, 123)] for row in x]";
const files: Readonly<Record<string, string>> = {
  "clean/config.pbtxt": config(
    'backend: "python"',
    tensor("input", "X", "TYPE_STRING", "1"),
    tensor("output", "Y", "TYPE_STRING", "1"),
  ),
  "clean/1/model.py": model("X", "Y", "np.object_", "[[row[0].strip()] for row in x]"),
  "count/config.pbtxt": config(
    'backend: "python"',
    tensor("input", "X", "TYPE_STRING", "1"),
    tensor("output", "Y", "TYPE_FP32", "26"),
  ),
  "count/1/model.py": model("X", "Y", "np.float32", letters),
  "normalize/config.pbtxt": config(
    'backend: "python"',
    tensor("input", "X", "TYPE_FP32", "26"),
    tensor("output", "Y", "TYPE_FP32", "26"),
  ),
  "normalize/1/model.py": model("X", "Y", "np.float32", "x / np.linalg.norm(x, axis=1, keepdims=True)"),
  "ensemble/config.pbtxt":
    config(
      'platform: "ensemble"',
      tensor("input", "TEXT", "TYPE_STRING", "1"),
      tensor("output", "EMBEDDING", "TYPE_FP32", "26"),
    ) +
    `ensemble_scheduling {\n${step("clean", "TEXT", "a")}${step("count", "a", "b")}${step("normalize", "b", "EMBEDDING")}}\n`,
  "ensemble/1/.keep": "",
};

before(async () => {
  platform = await ScriptedPlatform.open();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(platform.directory, "models", path)), { recursive: true });
    await writeFile(join(platform.directory, "models", path), text);
  }
});

after(() => platform[Symbol.asyncDispose]());

test("the example script completes with boto3 and tritonclient, prints its results, and can run again", async () => {
  // Counts of a, b and c in "The cat sits outside" (1, 0 and 1), divided by the counts' length √39.
  const expected = [
    /^endpoint ensembles-\S+ InService$/,
    /^json {3}\(2, 26\) \[0\.16012816 +0\. +0\.16012816\]$/,
    /^binary \(2, 26\) \[0\.16012816 +0\. +0\.16012816\]$/,
    /^new tenant responded after \d+ ms$/,
    /^deleted tenant: \S+$/,
    /^done$/,
  ];
  for (let time = 0; time < 2; time++) {
    const output = await platform.run(program, [join(platform.directory, "models")]);
    const lines = output.trimEnd().split("\n");
    assert.equal(lines.length, expected.length, output);
    for (const [index, pattern] of expected.entries()) assert.match(lines[index] ?? "", pattern);
  }
});
