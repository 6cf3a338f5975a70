import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ScriptServer } from "./script-server.ts";
import { ServingArchives, type ServingCase } from "./serving-fixture.ts";

// Responses are compared with TensorFlow's own results in the process that saved the archive.

let archives: ServingArchives;
let server: ScriptServer;
const json = { "Content-Type": "application/json" };

before(async () => {
  archives = await ServingArchives.make();
  server = await ScriptServer.open("tensorflow-serving");
  for (const archive of new Set(archives.cases.map((one) => one.archive))) {
    const loaded = await server.load(archive, await archives.files(archive));
    assert.equal(loaded.status, 200, loaded.body);
  }
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await archives[Symbol.asyncDispose]();
});

const headersOf = ({ type, headers }: ServingCase) => ({ "Content-Type": type ?? "application/json", ...headers });

/** Asserts that a result equals TensorFlow's: numbers to six digits of the largest one, everything else exactly. */
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

test("predictions for rows, columns, strings, bytes, versions, signatures, classes and regressions equal TensorFlow's", async () => {
  for (const each of archives.cases) {
    const reply = await server.invoke(each.archive, each.body, headersOf(each));
    assert.deepEqual([reply.status, reply.contentType], [200, "application/json"], `${each.body}: ${reply.body}`);
    isSame(JSON.parse(reply.body), each.expected, each.body.slice(0, 200));
  }
});

test("responses have TensorFlow Serving's formatting, on one line for clients that accept JSON", async () => {
  const request = async (archive: string, body: string, headers = {}) =>
    (await server.invoke(archive, body, { ...json, ...headers })).body;
  const halves = { "X-Amzn-SageMaker-Custom-Attributes": "tfs-model-version=1" };
  const rows = '{"instances": [1, 2.5, 0.333333333, 16777216, 16777218, 1e9]}';
  const found = "[2.5, 3.25, 2.16666675, 8.38861e+06, 8388611.0, 5e+08\n    ]";
  assert.equal(await request("lines", rows, halves), `{\n    "predictions": ${found}\n}`);
  const accepted = await request("lines", rows, { ...halves, Accept: "application/json" });
  assert.equal(accepted, `{    "predictions": ${found.replace("\n", "")}}`);
  const columns = '{"inputs": [1, NaN, Infinity, -Infinity]}';
  const lines = ["2.5", "NaN", "Infinity", "-Infinity"].join(",\n        ");
  assert.equal(await request("lines", columns, halves), `{\n    "outputs": [\n        ${lines}\n    ]\n}`);
  const pair = '{"instances": [{"a": [1, 2], "b": 3, "c": [true, false]}]}';
  const members = ['"not": [false, true]', '"sum": 6.0', '"twice": 6', `"wide": ${3 * 2 ** 40}`];
  const indented = members.join(",\n            ");
  assert.equal(
    await request("pair", pair),
    `{\n    "predictions": [\n        {\n            ${indented}\n        }\n    ]\n}`,
  );
});

interface Refused {
  readonly archive: string;
  readonly body: string | Buffer;
  readonly status: number;
  readonly error: string | RegExp;
  readonly type?: string;
  readonly attributes?: string;
}
const refused = (archive: string, body: unknown, error: string | RegExp, more: Partial<Refused> = {}): Refused => ({
  archive,
  body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  status: 400,
  error,
  ...more,
});
const element = "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: ";

// The texts are those of TensorFlow Serving's sources (json_tensor.cc, predict_util.cc, classifier.cc, regressor.cc)
// unless a row says otherwise.
const refusals: readonly Refused[] = [
  refused("other", "", "JSON Parse error: The document is empty"),
  refused("other", "{ this is not valid json", "JSON Parse error: Missing a name for object member. at offset: 2"),
  refused(
    "other",
    '{"instances": [1, 2}',
    "JSON Parse error: Missing a comma or ] after an array element. at offset: 19",
  ),
  refused(
    "other",
    '{"a": "é" "instances": 1}',
    "JSON Parse error: Missing a comma or } after an object member. at offset: 11",
  ),
  refused("other", '{"instances": [x]}', "JSON Parse error: Invalid value. at offset: 15"),
  // This limit is ours: TensorFlow Serving accepts any depth.
  refused("other", "[".repeat(100_000), /nested too deep/),
  refused("other", { instances: 5 }, `JSON Value: {\n    "instances": 5\n} Expecting 'instances' to be an list/array`),
  refused("other", { instances: [] }, `JSON Value: {\n    "instances": []\n} No values in 'instances' array`),
  refused(
    "other",
    { instances: [1], inputs: [1] },
    /Not formatted correctly expecting only one of 'inputs' or 'instances'/,
  ),
  refused("other", { examples: [1] }, "Missing 'inputs' or 'instances' key"),
  refused("other", { instances: [[1, 2, 3]], signature_name: 7 }, /'signature_name' key must be a string value\.$/),
  refused(
    "other",
    { instances: [[1]], signature_name: "no" },
    'Serving signature name: "no" not found in signature def',
  ),
  refused(
    "other",
    {
      instances: [
        [1, 2, 3],
        [1, 2],
      ],
    },
    `${element}Expecting tensor size: 3 but got: 2`,
  ),
  refused("other", { instances: [[1, 2, 3], [[1, 2, 3]]] }, `${element}Expecting shape [3] but got: [1,3]`),
  refused(
    "other",
    {
      instances: [
        [1, 2, 3],
        [1, "a", 3],
      ],
    },
    `${element}JSON Value: "a" Type: String is not of expected type: float`,
  ),
  refused(
    "other",
    {
      instances: [
        [1, 2, 3],
        [1, true, 3],
      ],
    },
    `${element}JSON Value: true Type: True is not of expected type: float`,
  ),
  refused(
    "other",
    {
      instances: [
        [1, 2, 3],
        [1, null, 3],
      ],
    },
    `${element}JSON Value: null Type: Null is not of expected type: float`,
  ),
  refused(
    "other",
    {
      instances: [
        [1, 2, 3],
        [1, [2], 3],
      ],
    },
    `${element}Encountered list at unexpected level: 1 expected < 1`,
  ),
  refused(
    "other",
    { instances: [[1, 2, 3], { x: [1, 2, 3] }] },
    "Expecting value/list but got object at item 1 of input list",
  ),
  refused(
    "other",
    { instances: [{ x: [1, 2, 3] }, [1, 2, 3]] },
    "Expecting object but got list at item 1 of input list",
  ),
  refused(
    "other",
    { instances: [{ y: [1, 2, 3] }] },
    /element: 0 key: y of 'instances' list.*does not have named input: y$/,
  ),
  refused("other", { inputs: { y: [1] } }, "Missing named input: x in 'inputs' object."),
  refused("other", { inputs: [[1], [2, 3]] }, "Encountered list at unexpected size: 2 at level: 1 expected size: 1"),
  refused(
    "other",
    { inputs: [[1], 2] },
    "JSON Value: 2 found at incorrect level: 2 in the JSON DOM. Expected at level: 2",
  ),
  refused("other", '{"instances": [[1e999, 1, 1]]}', "JSON Parse error: Number too big to be stored in double."),
  refused(
    "other",
    `{"instances": [[1${"0".repeat(5000)}, 1, 1]]}`,
    "JSON Parse error: Number too big to be stored in double.",
  ),
  refused("pair", { instances: [[1]] }, /instances is a plain list, but expecting list of objects/),
  refused(
    "pair",
    { instances: [{ a: [1, 2], b: 1.5, c: [true] }] },
    /key: b .*JSON Value: 1\.5 Type: Number is not of expected type: int32$/,
  ),
  refused(
    "pair",
    { instances: [{ a: [1, 2], b: 2 ** 31, c: [true] }] },
    /JSON Value: 2147483648 Type: Number is not of expected type: int32$/,
  ),
  refused(
    "pair",
    { instances: [{ a: [1, 2], b: 1 }] },
    /element: 0 of 'instances' list\. JSON object: .* keys must be equal to: a,b,c$/s,
  ),
  refused("pair", { inputs: [1] }, /inputs is a plain value\/list, but expecting an object/),
  refused("text", { instances: [{ b64: "no base64!" }] }, /Unable to base64 decode$/),
  refused("text", { instances: [1] }, /JSON Value: 1 Type: Number is not of expected type: string$/),
  refused("examples", { instances: [1] }, /When method is classify, key 'examples' is expected/, {
    attributes: "tfs-method=classify",
  }),
  refused("examples", { examples: [5] }, "Example must be JSON object but got JSON Number", {
    attributes: "tfs-method=classify",
  }),
  refused("examples", { examples: [{ n: [1, 1.5] }] }, "Unexpected element type in feature: n expecting type: int64", {
    attributes: "tfs-method=classify",
  }),
  refused("examples", { examples: [{ n: 2 ** 64 }] }, /only int64_t is supported|has uint64_t element/i, {
    attributes: "tfs-method=classify",
  }),
  refused(
    "examples",
    { examples: [{}], signature_name: "raw" },
    /^No regression inputs found in SignatureDef: inputs \{/,
    {
      attributes: "tfs-method=regress",
    },
  ),
  refused("examples", { examples: [{ x: [1.5] }] }, /Key: x\.|shape/, { attributes: "tfs-method=classify" }),
  refused("lines", { instances: [1] }, "Servable not found for request: Specific(lines, 3)", {
    status: 404,
    attributes: "tfs-model-version=3",
  }),
  refused("lines", { instances: [1] }, "Servable not found for request: Latest(none)", {
    status: 404,
    attributes: "tfs-model-name=none",
  }),
  refused("lines", { instances: [1] }, "invalid tfs-method", { attributes: "tfs-method=../x" }),
  refused("lines", { instances: [1] }, "invalid tfs-model-name", { attributes: "tfs-model-name=../x" }),
  refused("lines", { instances: [1] }, "invalid tfs-model-version", { attributes: "tfs-model-version=-1" }),
  refused("other", "1,2,3", "Unsupported Media Type: application/x-npy", { status: 415, type: "application/x-npy" }),
  refused("other", "1,2,3", "Unsupported Media Type: Unknown", { status: 415, type: "" }),
  refused("other", '1,hello,"world,earth"\n', /JSON Value: "hello" Type: String is not of expected type: float$/, {
    type: "text/csv",
  }),
  refused("other", Buffer.from([0xff, 0xfe, 0x00]), "JSON Parse error: Invalid value. at offset: 0"),
];

test("invalid requests get TensorFlow Serving's texts and statuses", async () => {
  for (const { archive, body, status, error, type, attributes } of refusals) {
    const headers = {
      ...(type === "" ? {} : { "Content-Type": type ?? "application/json" }),
      ...(attributes === undefined ? {} : { "X-Amzn-SageMaker-Custom-Attributes": attributes }),
    };
    const reply = await server.invoke(archive, body, headers);
    const what = `${String(body).slice(0, 100)}: ${reply.body}`;
    assert.deepEqual([reply.status, reply.contentType], [status, "application/json"], what);
    const text = (JSON.parse(reply.body) as { error: string }).error;
    if (typeof error === "string") assert.equal(text, error, what);
    else assert.match(text, error, what);
  }
});
