/** `galatea new`, and the commands that it prints, run as they are printed. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { encodeOnnx } from "@galatea/server/onnx-file";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { classifier } from "./classifier-fixture.ts";

const packageDirectory = fileURLToPath(new URL("..", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "gal-new-"));
after(() => rmSync(root, { recursive: true }));

writeFileSync(join(root, "galatea"), `#!/bin/sh\nexec ${process.execPath} ${packageDirectory}/src/main.ts "$@"\n`);
chmodSync(join(root, "galatea"), 0o755);
const { npm_command: _, ...inherited } = process.env;
const env = { ...inherited, PATH: `${root}:${process.env["PATH"]}` };

const galatea = (...words: readonly string[]) => spawnSync("galatea", words, { cwd: root, env, encoding: "utf8" });

/** The response of each template to the request that `galatea new` prints. */
const responses = {
  python: [
    { name: "OUTPUT0", datatype: "FP32", shape: [1, 4], data: [11, 12, 13, 14] },
    { name: "OUTPUT1", datatype: "FP32", shape: [1, 4], data: [-9, -8, -7, -6] },
  ],
  onnx: [{ name: "scores", datatype: "FP32", shape: [1, 3], data: [0.35, 1.25, 0.65] }],
  ensemble: [{ name: "label", datatype: "BYTES", shape: [1, 1], data: ["dog"] }],
};

for (const [kind, outputs] of Object.entries(responses)) {
  test(`the commands printed by galatea new --${kind} serve the model and get its response`, async () => {
    const { status, stdout, stderr } = galatea("new", `first ${kind}`, `--${kind}`);
    assert.deepEqual([status, stderr], [0, ""]);
    const [serve = "", curl = ""] = stdout.split("\n").filter((line) => line.startsWith("  "));
    assert.match(serve, /^ {2}galatea serve --model-repository 'first \w+'$/);
    // Other ports, because port 8000 may be another server's.
    const flags = "--http-address=127.0.0.1 --http-port=0 --allow-grpc=false --allow-metrics=false";
    const child = spawn("sh", ["-c", `exec ${serve} ${flags}`], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
    const closed = new Promise((resolve) => child.once("close", resolve));
    try {
      let log = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (log += String(chunk)));
      const address = () => /Started HTTPService at (127\.0\.0\.1:\d+)/.exec(log)?.[1];
      await eventually(() => {
        assert.equal(child.exitCode, null, log);
        return address() !== undefined;
      });
      const called = spawnSync("sh", ["-c", curl.replace("localhost:8000", address() ?? "")], {
        cwd: root,
        env,
        encoding: "utf8",
      });
      const response = JSON.parse(called.stdout) as {
        readonly outputs: readonly { readonly data: readonly unknown[] }[];
      };
      const rounded = response.outputs.map((output) => ({
        ...output,
        data: output.data.map((value) => (typeof value === "number" ? Math.round(value * 1e6) / 1e6 : value)),
      }));
      assert.deepEqual(rounded, outputs);
    } finally {
      child.kill("SIGTERM");
      await closed;
    }
  });
}

test("galatea new rejects an existing folder, two kinds, and a missing name", () => {
  assert.equal(galatea("new", "twice").status, 0);
  const again = galatea("new", "twice", "--onnx");
  assert.deepEqual([again.status, again.stderr], [1, "galatea new: 'twice' exists; choose another name\n"]);
  assert.match(galatea("new", "both", "--onnx", "--script").stderr, /^--onnx and --script cannot be used together\n/);
  assert.match(galatea("new").stderr, /^galatea new needs the name of a folder to create\n/);
});

test("the Python model equals the one in README.md, and the ONNX file equals the encoded graph", () => {
  const template = (path: string) => readFileSync(join(packageDirectory, "templates", path));
  for (const file of ["config.pbtxt", "1/model.py"]) {
    const example = readFileSync(join(packageDirectory, "../../examples/add_sub/models/add_sub", file));
    assert.deepEqual(template(`python/add_sub/${file}`), example, file);
  }
  for (const kind of ["onnx", "ensemble"])
    assert.deepEqual(template(`${kind}/classifier/1/model.onnx`), encodeOnnx(classifier), kind);
  assert.deepEqual(template("ensemble/classifier/config.pbtxt"), template("onnx/classifier/config.pbtxt"));
});
