import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { ensureFramework } from "../environments/index.ts";
import { ScriptServer } from "./script-server.ts";

// The responses of SageMaker's own container were recorded by record_xgboost.py.

interface Recorded {
  readonly name: string;
  /** Files by name, in base64 like the bodies. */
  readonly files: Readonly<Record<string, string>>;
  readonly requests: readonly { readonly body: string; readonly headers: Readonly<Record<string, string>> }[];
  readonly error: string | null;
  readonly answers: readonly { readonly status: number; readonly type: string | null; readonly body: string }[];
}

const recorded = JSON.parse(
  await readFile(new URL("../vectors/xgboost-scripts.json", import.meta.url), "utf8"),
) as readonly Recorded[];
const bytesOf = (base64: string) => Buffer.from(base64, "base64");
const csv = { "Content-Type": "text/csv" };
let server: ScriptServer;

before(async () => {
  await ensureFramework("xgboost");
  server = await ScriptServer.open("xgboost", { SAGEMAKER_PROGRAM: "inference.py" });
});
after(() => server[Symbol.asyncDispose]());

/** Returns the comparable part of a response: of an error the text before its traceback, without XGBoost's time. */
function compared(status: number, body: Buffer): string {
  if (status < 400) return body.toString("latin1");
  return (body.toString().split(/\n(Traceback|Stack trace)/)[0] ?? "").replace(/^\[\d\d:\d\d:\d\d\] /, "");
}

for (const [index, { name, files, requests, error, answers }] of recorded.entries())
  test(`a script's results equal those recorded from SageMaker's XGBoost container: ${name}`, async () => {
    const unpacked = Object.fromEntries(Object.entries(files).map(([path, content]) => [path, bytesOf(content)]));
    const loaded = await server.load(`r${index}`, unpacked);
    if (error !== null) {
      assert.equal(loaded.status, 400);
      for (const line of error.split("\n")) assert.ok(loaded.body.includes(line), loaded.body);
      return;
    }
    assert.equal(loaded.status, 200, loaded.body);
    for (const [at, { body, headers }] of requests.entries()) {
      const expected = answers[at]!;
      const reply = await server.invoke(`r${index}`, bytesOf(body), headers);
      const text = `request ${at}, ${JSON.stringify(headers)}: ${reply.body}`;
      assert.equal(reply.status, expected.status, text);
      assert.equal(compared(reply.status, reply.bytes), compared(expected.status, bytesOf(expected.body)), text);
      if (expected.status < 400) assert.equal(reply.contentType, expected.type, text);
    }
  });

const varint = (value: bigint): number[] =>
  value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)];
/** Encodes a protobuf field with bytes. */
const field = (number: number, content: readonly number[]) => [
  (number << 3) | 2,
  ...varint(BigInt(content.length)),
  ...content,
];
/** Encodes a `Record` whose features named `values` are a float32 tensor. */
const features = (tensor: readonly number[]) =>
  field(1, [...field(1, [...Buffer.from("values")]), ...field(2, field(2, tensor))]);
function framed(record: readonly number[]): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(0xced7230a);
  head.writeUInt32LE(record.length, 4);
  return Buffer.concat([head, Buffer.from(record)], 8 + Math.ceil(record.length / 4) * 4);
}

const shape = `
def model_fn(model_dir):
    return None
def predict_fn(data, model):
    return [data.num_row(), data.num_col()]
`;

test("parameters of a content type are ignored", async () => {
  assert.equal((await server.load("shape", { "code/inference.py": shape })).status, 200);
  const reply = await server.invoke("shape", "1,2,3", { "Content-Type": "text/csv; charset=utf-8; label_size=1" });
  assert.deepEqual([reply.status, reply.body], [200, "[1, 3]"]);
});

test("bodies that declare more cells than they contain are rejected before memory is allocated", async () => {
  assert.equal((await server.load("wide", { "code/inference.py": shape })).status, 200);
  const libsvm = await server.invoke("wide", "0:1 999999999999:1", { "Content-Type": "text/libsvm" });
  assert.match(libsvm.body, /^1 rows of 1000000000000 columns are more than can be held\n/);
  const long = await server.invoke("wide", `1,${"x".repeat(2 ** 20)}\n${"1,2\n".repeat(100_000)}1,2`, csv);
  assert.match(long.body, /^could not convert string to float: np\.str_\('x{100}'\)\n/);
  const record = { "Content-Type": "application/x-recordio-protobuf" };
  const sparse = [...field(2, varint(2n ** 62n)), ...field(1, [0, 0, 128, 63])];
  assert.equal((await server.invoke("wide", framed(features(sparse)), record)).body, `[1, ${2n ** 62n + 1n}]`);
  for (const tensor of [
    [...field(2, varint(2n ** 64n - 1n)), ...field(1, [0, 0, 128, 63])],
    [...field(2, varint(7n)), ...field(1, [0, 0, 128, 63]), ...field(3, varint(2n))],
    field(1, [1, 2, 3]),
  ]) {
    const reply = await server.invoke("wide", framed(features(tensor)), record);
    assert.equal(reply.status, 500, reply.body);
  }
  assert.equal((await server.invoke("wide", "1,2", csv)).body, "[1, 2]");
});

test("a script with transform_fn needs no other functions, and XGBoost's scikit-learn interface is available", async () => {
  const script = `
import numpy as np, xgboost
def model_fn(model_dir):
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    return xgboost.XGBClassifier(n_estimators=5, max_depth=1, n_jobs=1, min_child_weight=0).fit(rows, [0, 0, 1, 1])
def transform_fn(model, data, content_type, accept):
    rows = np.array([[float(each)] for each in data.split(",")])
    return ",".join(map(str, model.predict(rows))), "text/plain"
`;
  const loaded = await server.load("classifier", { "code/inference.py": script });
  assert.equal(loaded.status, 200, loaded.body);
  const reply = await server.invoke("classifier", "0,1,2,3", csv);
  assert.deepEqual([reply.status, reply.contentType, reply.body], [200, "text/plain", "0,0,1,1"]);
});
