import assert from "node:assert/strict";
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment } from "../../conformance/environments/index.ts";

const run = promisify(execFile);
const main = fileURLToPath(new URL("../../server/src/main.ts", import.meta.url));
const program = fileURLToPath(new URL("multi_model_ensemble.py", import.meta.url));
const programMsMax = 120_000;

let root: string;
let platform: { readonly child: ChildProcess; readonly url: string };

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

async function up(): Promise<typeof platform> {
  const child = spawn(process.execPath, [main, "up", "--port", "0", "--data", join(root, "data")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  for await (const chunk of child.stdout) {
    text += String(chunk);
    const url = /at (http:\S+)/.exec(text)?.[1];
    if (url !== undefined) return { child, url };
  }
  throw new Error(`the platform ended before it was up: ${text}`);
}

/** What `galatea env` prints for this platform. */
async function variables(): Promise<Record<string, string>> {
  const { hostname, port } = new URL(platform.url);
  const args = [main, "env", "--host", hostname, "--port", port, "--data", join(root, "data")];
  const { stdout } = await run(process.execPath, args);
  const pairs = [...stdout.matchAll(/^export (\w+)=(.*)$/gm)];
  return Object.fromEntries(pairs.map(([, name = "", value = ""]) => [name, value.replace(/^'(.*)'$/, "$1")]));
}

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-boto3-"));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, "models", path)), { recursive: true });
    await writeFile(join(root, "models", path), text);
  }
  platform = await up();
});

after(async () => {
  const { child } = platform ?? {};
  if (child !== undefined && child.exitCode === null && child.signalCode === null) {
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await exited;
  }
  await rm(root, { recursive: true, force: true });
});

test("the script runs to its end with the real boto3 and tritonclient, says what it did, and runs again", async () => {
  const { python } = await ensureEnvironment(cacheDirectory(process.env), "clients");
  const env = { ...process.env, ...(await variables()) };
  // Rejects, with the script's own output, for any exit code but 0.
  const tell = async () => (await run(python, [program, join(root, "models")], { env, timeout: programMsMax })).stdout;
  // One a, no b, one c among the letters of "The cat sits outside", whose counts have the length √39.
  const wanted = [
    /^endpoint ensembles-\S+ InService$/,
    /^json {3}\(2, 26\) \[0\.16012816 +0\. +0\.16012816\]$/,
    /^binary \(2, 26\) \[0\.16012816 +0\. +0\.16012816\]$/,
    /^new tenant answered after \d+ ms$/,
    /^deleted tenant: \S+$/,
    /^done$/,
  ];
  for (const output of [await tell(), await tell()]) {
    const lines = output.trimEnd().split("\n");
    assert.equal(lines.length, wanted.length, output);
    for (const [index, pattern] of wanted.entries()) assert.match(lines[index] ?? "", pattern);
  }
});
