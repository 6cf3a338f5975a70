import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** Writes the URL of each module that a process loads to the file that LOADED names. */
const recorder = `
  import { registerHooks } from "node:module";
  import { appendFileSync } from "node:fs";
  registerHooks({ load(url, context, next) { appendFileSync(process.env.LOADED, url + "\\n"); return next(url, context); } });
`;

const config = `backend: "python" input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]`;
const model = `
class TritonPythonModel:
    def execute(self, requests):
        return []
`;

test("the server of an endpoint's instance loads no code of AWS, of hosting or of tools", async () => {
  const directory = await mkdtemp(join(tmpdir(), "loaded-"));
  try {
    const files = {
      "record.mjs": recorder,
      "models/one/config.pbtxt": config,
      "models/one/1/model.py": model,
    };
    await mkdir(join(directory, "models/one/1"), { recursive: true });
    for (const [path, text] of Object.entries(files)) await writeFile(join(directory, path), text);
    const loaded = join(directory, "loaded");
    const child = spawn(
      process.execPath,
      [
        "--import",
        join(directory, "record.mjs"),
        main,
        "serve",
        `--model-repository=${join(directory, "models")}`,
        `--sagemaker-socket=${join(directory, "socket")}`,
        "--allow-http=false",
        "--allow-grpc=false",
        "--allow-metrics=false",
      ],
      { env: { ...process.env, LOADED: loaded }, stdio: ["ignore", "pipe", "inherit"] },
    );
    const lines: string[] = [];
    for await (const line of createInterface(child.stdout)) {
      lines.push(line);
      if (/ready in/.test(line)) break;
    }
    child.kill("SIGTERM");
    await once(child, "exit");
    assert.match(lines.join("\n"), /ready in/);
    const urls = (await readFile(loaded, "utf8")).split("\n");
    assert.ok(
      urls.some((url) => url.includes("/packages/server/src/backends/python/")),
      "the model's backend is loaded",
    );
    assert.deepEqual(
      urls.filter((url) => /\/packages\/(aws|hosting|tools)\//.test(url)),
      [],
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
