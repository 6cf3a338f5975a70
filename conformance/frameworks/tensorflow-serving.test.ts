import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework } from "../environments/index.ts";
import { filesBelow, ScriptServer } from "./script-server.ts";

// What each archive answers is compared with what TensorFlow itself computed in the process that saved it.

interface Case {
  readonly archive: string;
  readonly body: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expected: unknown;
}

let directory: string;
let cases: readonly Case[];
let server: ScriptServer;
const json = { "Content-Type": "application/json" };

before(async () => {
  const { python } = await ensureFramework("tensorflow");
  directory = await mkdtemp(join(tmpdir(), "galatea-serving-"));
  const models = fileURLToPath(new URL("tensorflow_serving_models.py", import.meta.url));
  await promisify(execFile)(python, [models, directory]);
  cases = JSON.parse(await readFile(join(directory, "cases.json"), "utf8")) as Case[];
  server = await ScriptServer.open("tensorflow-serving");
  for (const archive of new Set(cases.map((one) => one.archive))) {
    const loaded = await server.load(archive, await filesBelow(join(directory, archive)));
    assert.equal(loaded.status, 200, loaded.body);
  }
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const headersOf = ({ type, headers }: Case) => ({ "Content-Type": type ?? "application/json", ...headers });

/** As TensorFlow computed it: numbers to six digits of the largest, all else to the letter. */
function isSame(found: unknown, expected: unknown, what: string): void {
  if (typeof expected === "number" && typeof found === "number") {
    const near = Math.abs(found - expected) <= 1e-6 * Math.max(1, Math.abs(expected));
    return assert.ok(near, `${what}: ${found}, ${expected}`);
  }
  if (typeof expected !== "object" || expected === null) return assert.equal(found, expected, what);
  assert.ok(typeof found === "object" && found !== null, `${what}: ${JSON.stringify(found)}`);
  assert.deepEqual(Object.keys(found).sort(), Object.keys(expected).sort(), what);
  for (const [key, value] of Object.entries(expected))
    isSame((found as Record<string, unknown>)[key], value, `${what}.${key}`);
}

test("rows, columns, strings, bytes, versions, signatures, classes and regressions are as TensorFlow computes them", async () => {
  for (const each of cases) {
    const reply = await server.invoke(each.archive, each.body, headersOf(each));
    assert.deepEqual([reply.status, reply.contentType], [200, "application/json"], `${each.body}: ${reply.body}`);
    isSame(JSON.parse(reply.body), each.expected, each.body.slice(0, 200));
  }
});

test("answers are written as TensorFlow Serving writes them, on one line for who accepts JSON", async () => {
  const ask = async (archive: string, body: string, headers = {}) =>
    (await server.invoke(archive, body, { ...json, ...headers })).body;
  const halves = { "X-Amzn-SageMaker-Custom-Attributes": "tfs-model-version=1" };
  const rows = '{"instances": [1, 2.5, 0.333333333, 16777216, 16777218, 1e9]}';
  const found = "[2.5, 3.25, 2.16666675, 8.38861e+06, 8388611.0, 5e+08\n    ]";
  assert.equal(await ask("lines", rows, halves), `{\n    "predictions": ${found}\n}`);
  const accepted = await ask("lines", rows, { ...halves, Accept: "application/json" });
  assert.equal(accepted, `{    "predictions": ${found.replace("\n", "")}}`);
  const columns = '{"inputs": [1, NaN, Infinity, -Infinity]}';
  const lines = ["2.5", "NaN", "Infinity", "-Infinity"].join(",\n        ");
  assert.equal(await ask("lines", columns, halves), `{\n    "outputs": [\n        ${lines}\n    ]\n}`);
  const pair = '{"instances": [{"a": [1, 2], "b": 3, "c": [true, false]}]}';
  const members = ['"not": [false, true]', '"sum": 6.0', '"twice": 6', `"wide": ${3 * 2 ** 40}`];
  const indented = members.join(",\n            ");
  assert.equal(
    await ask("pair", pair),
    `{\n    "predictions": [\n        {\n            ${indented}\n        }\n    ]\n}`,
  );
});
