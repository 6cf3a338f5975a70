import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import type { AlgorithmRequest } from "../payloads/algorithm-request.ts";
import { AlgorithmRequestError } from "../payloads/algorithm-request.ts";
import { zipOf } from "../../formats/zip-fixture.ts";
import { readLinearModel } from "./linear-model.ts";
import {
  linearLearnerArtifact,
  linearLearnerFiles,
  savedLinearModels,
  type SavedLinearModel,
} from "./linear-models-fixture.ts";
import { predictLinear } from "./linear-payloads.ts";

const { regressor, binary, multiclass } = savedLinearModels;

function rowsOf({ rows }: SavedLinearModel) {
  return { rowCount: rows.length, columnCount: 4, values: Float32Array.from(rows.flat()) };
}

function close(actual: ArrayLike<number>, expected: readonly number[]): void {
  assert.equal(actual.length, expected.length);
  for (const [index, value] of expected.entries()) assert.ok(Math.abs((actual[index] as number) - value) <= 1e-6);
}

function responseText(
  saved: SavedLinearModel,
  payload: Partial<AlgorithmRequest> & { readonly text?: string },
): string {
  const { text = "", contentType = "text/csv", accept = "" } = payload;
  const bytes = payload.bytes ?? Buffer.from(text);
  const response = predictLinear(readLinearModel(linearLearnerArtifact(saved)), { bytes, contentType, accept });
  return Buffer.from(response.bytes).toString("utf8");
}

function refused(payload: { readonly text: string; readonly contentType?: string; readonly accept?: string }) {
  try {
    responseText(regressor, payload);
  } catch (error) {
    assert.ok(error instanceof AlgorithmRequestError, String(error));
    return { status: error.status, message: error.message };
  }
  return assert.fail("the request was accepted");
}

for (const [name, saved] of Object.entries(savedLinearModels)) {
  test(`a ${name} that MXNet saved gets the scores of MXNet`, () => {
    const predictions = readLinearModel(linearLearnerArtifact(saved)).predict(rowsOf(saved));
    assert.equal(predictions.length, saved.rows.length);
    for (const [row, { scores }] of predictions.entries()) close(scores, saved.scores[row] as readonly number[]);
  });
}

test("a label is the class of the highest score, or 1 for a score above 0.5; a regressor returns no label", () => {
  const labels = (saved: SavedLinearModel) =>
    readLinearModel(linearLearnerArtifact(saved))
      .predict(rowsOf(saved))
      .map(({ label }) => label);
  assert.deepEqual(labels(regressor), [null, null, null]);
  assert.deepEqual(
    labels(binary),
    binary.scores.map(([score]) => (score > 0.5 ? 1 : 0)),
  );
  assert.deepEqual(
    labels(multiclass),
    multiclass.scores.map((scores) => (scores as readonly number[]).indexOf(Math.max(...scores))),
  );
});

test("equal rows get equal responses from CSV, JSON, JSON lines (dense and sparse) and RecordIO", () => {
  const { rows } = multiclass;
  const sparse = (row: readonly number[]) => ({ data: { features: { keys: [0, 1, 2, 3], shape: [4], values: row } } });
  const csv = responseText(multiclass, { text: `${rows.map((row) => row.join(",")).join("\n")}\n` });
  assert.match(csv, /^\{"predictions": \[\{"score": \[0\.\d+, 0\.\d+, 0\.\d+\], "predicted_label": \d\}, /);
  const bodies: Record<string, readonly [contentType: string, bytes: Buffer]> = {
    json: ["application/json", Buffer.from(JSON.stringify({ instances: rows.map((features) => ({ features })) }))],
    nested: [
      "application/json",
      Buffer.from(JSON.stringify({ instances: rows.map((values) => ({ data: { features: { values } } })) })),
    ],
    sparse: ["application/json; charset=utf-8", Buffer.from(JSON.stringify({ instances: rows.map(sparse) }))],
    lines: ["application/jsonlines", Buffer.from(rows.map((row) => JSON.stringify({ features: row })).join("\n"))],
    recordIo: ["application/x-recordio-protobuf", Buffer.concat(rows.map(recordOf))],
  };
  for (const [name, [contentType, bytes]] of Object.entries(bodies)) {
    assert.equal(responseText(multiclass, { bytes, contentType }), csv, name);
  }
});

/** Encodes a record with a float32 tensor named `values`. All lengths are below 128. */
function recordOf(row: readonly number[]): Buffer {
  const field = (tag: number, content: Buffer) => Buffer.concat([Buffer.from([tag, content.length]), content]);
  const tensor = field(0x0a, Buffer.from(Float32Array.from(row).buffer));
  const record = field(0x0a, Buffer.concat([field(0x0a, Buffer.from("values")), field(0x12, field(0x12, tensor))]));
  const header = Buffer.alloc(8);
  header.writeUInt32LE(0xced7230a, 0);
  header.writeUInt32LE(record.length, 4);
  return Buffer.concat([header, record, Buffer.alloc(-record.length & 3)]);
}

test("a response is JSON unless the client accepts another type", () => {
  const text = binary.rows[0].join(",");
  const [[score]] = binary.scores;
  const label = score > 0.5 ? 1 : 0;
  const scoreIn = (text: string) => Number(/0\.\d+/.exec(text)?.[0]);
  const json = responseText(binary, { text, accept: "*/*" });
  close([scoreIn(json)], [score]);
  assert.equal(json.replace(/0\.\d+/, "S"), `{"predictions": [{"score": S, "predicted_label": ${label}}]}`);
  const lines = responseText(binary, { text, accept: "application/jsonlines" });
  assert.equal(lines.replace(/0\.\d+/, "S"), `{"score": S, "predicted_label": ${label}}\n`);
  assert.equal(responseText(binary, { text, accept: "text/csv" }), `${scoreIn(json)}\n`);
  const record = responseText(binary, { text, accept: "application/x-recordio-protobuf" });
  assert.match(record, /score[^]*predicted_label/);
});

test("invalid types and rows get the statuses 415, 406 and 400 and the texts of SageMaker's container", () => {
  assert.deepEqual(refused({ text: "1", contentType: "image/png" }), {
    status: 415,
    message:
      "Content-type image/png not supported. Supported content-type is text/csv, application/json, application/jsonlines, application/x-recordio-protobuf",
  });
  assert.equal(refused({ text: "1,2,3,4", accept: "image/png" }).status, 406);
  const message = (text: string, contentType = "text/csv") => {
    const found = refused({ text, contentType });
    assert.equal(found.status, 400);
    return found.message.replace("unable to evaluate payload provided: ", "");
  };
  assert.equal(message("1,2,3"), "the model has 4 features, the payload has 3");
  assert.equal(message("1,2,3,x"), "could not convert string to float: 'x'");
  assert.equal(message("1,2,3,4\n1,2"), "row 1 has 2 columns, the first one has 4");
  assert.equal(message(""), "there are no rows");
  assert.equal(message('{"instances": []}', "application/json"), "there are no instances");
  assert.equal(message('{"instances": [{"features": ["a"]}]}', "application/json"), "a feature is not a number");
  assert.match(message("[", "application/json"), /JSON/);
  assert.equal(message("xxxxxxxx", "application/x-recordio-protobuf"), "there is no RecordIO header at byte 0");
});

test("a sparse row with a huge column index is rejected before a table is allocated", () => {
  const far = { instances: [{ data: { features: { keys: [2 ** 40], shape: [2 ** 41], values: [1] } } }] };
  assert.throws(
    () => responseText(regressor, { text: JSON.stringify(far), contentType: "application/json" }),
    /unable to evaluate payload provided: the payload has 2199023255552 columns/,
  );
});

test("a truncated or bit-flipped model file is rejected with InferenceError or predicts as the intact file does", () => {
  const complete = linearLearnerArtifact(multiclass);
  const outcome = (bytes: Buffer): string => {
    try {
      return JSON.stringify(
        readLinearModel(bytes)
          .predict(rowsOf(multiclass))
          .map(({ scores }) => [...scores]),
      );
    } catch (error) {
      assert.ok(error instanceof InferenceError, `${String(error)}\n${(error as Error).stack}`);
      return "refused";
    }
  };
  const untouched = outcome(complete);
  for (let length = 0; length < complete.length; length += 1)
    assert.equal(outcome(complete.subarray(0, length)), "refused");
  for (let bit = 0; bit < complete.length * 8; bit += 1) {
    const turned = Buffer.from(complete);
    turned[bit >> 3] = (turned[bit >> 3] as number) ^ (1 << (bit & 7));
    assert.ok(["refused", untouched].includes(outcome(turned)), `bit ${bit}`);
  }
});

test("corrupt parameters are rejected with InferenceError, and no memory is allocated for elements that the file lacks", () => {
  const files = linearLearnerFiles(multiclass);
  const parameters = files["mx-mod-0000.params"];
  fc.assert(
    fc.property(fc.nat(parameters.length - 9), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (at, value) => {
      const changed = Buffer.from(parameters);
      changed.writeBigUInt64LE(value, at);
      try {
        readLinearModel(zipOf({ ...files, "mx-mod-0000.params": changed }));
      } catch (error) {
        assert.ok(error instanceof InferenceError, `${String(error)}\n${(error as Error).stack}`);
      }
    }),
    { numRuns: 2000 },
  );
});

const refusedSymbols: Readonly<Record<string, readonly [symbol: unknown, message: RegExp]>> = {
  "whose nodes form a cycle": [
    { nodes: [{ op: "FullyConnected", name: "fc0", inputs: [[0, 0, 0]] }], heads: [[0, 0, 0]] },
    /does not come after its inputs/,
  ],
  "with an unknown operator": [
    {
      nodes: [
        { op: "null", name: "data", inputs: [] },
        { op: "null", name: "fc0_weight", inputs: [] },
        { op: "null", name: "fc0_bias", inputs: [] },
        {
          op: "FullyConnected",
          name: "fc0",
          inputs: [
            [0, 0],
            [1, 0],
            [2, 0],
          ],
        },
        { op: "Convolution", name: "c", inputs: [[3, 0, 0]] },
      ],
      heads: [[4, 0, 0]],
    },
    /an operator 'Convolution' that linear models do not have/,
  ],
  "without an output": [{ nodes: [], heads: [] }, /has no output/],
  "without weights": [{ nodes: [{ op: "null", name: "data", inputs: [] }], heads: [[0, 0, 0]] }, /has no weights/],
};
for (const [name, [symbol, message]] of Object.entries(refusedSymbols)) {
  test(`a symbol ${name} is rejected`, () => {
    assert.throws(
      () => readLinearModel(linearLearnerArtifact({ ...multiclass, symbol: JSON.stringify(symbol) as never })),
      message,
    );
  });
}

test("a zip bomb is inflated only up to its declared size, and a declared size above 1 GiB is rejected", () => {
  const files = linearLearnerFiles(multiclass);
  const bomb = zipOf({ ...files, "mx-mod-0000.params": Buffer.alloc(64 * 2 ** 20) });
  const sizeAt = bomb.lastIndexOf("mx-mod-0000.params") - 46 + 24;
  const claiming = (byteLength: number) => {
    const claimed = Buffer.from(bomb);
    claimed.writeUInt32LE(byteLength, sizeAt);
    return claimed;
  };
  assert.throws(() => readLinearModel(claiming(1000)), /'mx-mod-0000.params' that cannot be inflated/);
  assert.throws(() => readLinearModel(claiming(2 ** 31)), /more than 1073741824 bytes/);
});
