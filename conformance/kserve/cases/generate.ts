import type { Case, Step } from "../case.ts";
import { differs, newer, post } from "../requests.ts";

const generate = (model: string, body: unknown, headers: Record<string, string> = {}): Step =>
  post(`/v2/models/${model}/generate`, body, "json", { headers });
const refused = (model: string, body: unknown, headers: Record<string, string> = {}): Step =>
  post(`/v2/models/${model}/generate`, body, "error", { headers });
const stream = (model: string, body: unknown, headers: Record<string, string> = {}): Step =>
  post(`/v2/models/${model}/generate_stream`, body, "bytes", { headers });
const item = (name: string, ...steps: readonly Step[]): Case => ({ name: `generate: ${name}`, fixture: "main", steps });
const text = (members: string) => `{"INPUT0":[1,2],${members}}`;

const pair = { INPUT0: [1, 2, 3, 4], INPUT1: [0.5, 0.25, 0.1, -1] };
const evaluated = (expression: string) => ({
  CODE: `pb_utils.InferenceResponse([pb_utils.Tensor('OUT', ${expression})])`,
});

/** For each datatype: JSON values that it accepts, and values that it rejects. */
const acquired: Readonly<Record<string, readonly string[]>> = {
  BOOL: ["true", "[true,false]", "[]", "[[true]]"],
  UINT8: ["1", "[0,255]"],
  UINT16: ["65535"],
  UINT32: ["4294967295"],
  UINT64: ["18446744073709551615", "[1,9007199254740993]"],
  INT8: ["-128"],
  INT16: ["[-32768,32767]"],
  INT32: ["1", "[1,[2]]", `${"[".repeat(90)}1${"]".repeat(90)}`],
  INT64: ["-9223372036854775808"],
  FP32: ["0.1", "[1,2.5,-0.0,1e10]", "NaN", "18446744073709551615"],
  FP64: ["0.1", "5e-324"],
  STRING: ['"a"', '""', '["a","b",["c"]]', '["",""]', '"\\u0000a\\ud83d\\ude00/\\/é"', "[]"],
};
const refusedValues = [
  "-1.5",
  '"a"',
  "true",
  "null",
  "{}",
  '[1,"a"]',
  "[null]",
  "[{}]",
  "[[]]",
  "[[1,2],[3,4]]",
  "1e400",
];
const wrongFor: Readonly<Record<string, readonly string[]>> = {
  BOOL: ["1", '"a"', "null"],
  UINT8: refusedValues,
  INT64: refusedValues,
  FP32: ['"a"', "true", "null", "{}", '["NaN"]', "[[]]"],
  STRING: ["1", "true", "null", "{}", '["a",1]', '[["a","b"]]'],
  FP16: ["1", '"a"', "[]"],
};

export const generates: readonly Case[] = [
  item("one answer, its members in order", generate("add_sub", pair)),
  item("the answer of a stream", stream("add_sub", pair)),
  item(
    "the response has the request's id",
    generate("add_sub", { id: "r1", ...pair }),
    stream("add_sub", { ...pair, id: "ü\n" }),
  ),
  item("versions", generate("versions", { IN: 0 }), generate("versions/versions/1", { IN: 0 })),
  item(
    "versions that do not exist",
    refused("versions/versions/9", { IN: 0 }),
    refused("versions/versions/0", { IN: 0 }),
    refused("versions/versions/x", { IN: 0 }),
    refused("versions/versions/99999999999999999999", { IN: 0 }),
    post("/v2/models/versions/versions/9/generate_stream", { IN: 0 }, "error"),
  ),
  item(
    "models that do not exist",
    refused("nope", pair),
    refused("nope", ""),
    post("/v2/models/nope/generate_stream", pair, "error"),
  ),
  item(
    "other methods",
    ...(["GET", "PUT", "DELETE"] as const).flatMap((method) =>
      ["generate", "generate_stream"].map((verb): Step => ({
        request: { method, path: `/v2/models/add_sub/${verb}` },
        compare: "error",
      })),
    ),
  ),
  item(
    "elements fill a batch of rows",
    generate("add_sub_batch", { INPUT0: [1, 2, 3, 4, 5, 6, 7, 8], INPUT1: [8, 7, 6, 5, 4, 3, 2, 1] }),
  ),
  item(
    "element counts that fit the shape",
    generate("identity_matrix", { INPUT0: [1, 2, 3, 4, 5, 6] }),
    generate("identity_matrix", { INPUT0: [] }),
    generate("identity_batch", { INPUT0: [1, 2, 3] }),
    generate("identity_batch", { INPUT0: 3 }),
    generate("identity_bytes", { INPUT0: "a" }),
    generate("identity_bytes", { INPUT0: ["a", "b"] }),
    generate("reshaped", { INPUT0: 4 }),
    generate("reshaped", { INPUT0: [4, 5] }),
    generate("upper", { TEXT: "x" }),
    generate("upper", { TEXT: [] }),
  ),
  item(
    "element counts that do not fit the shape",
    refused("add_sub", { ...pair, INPUT0: 1 }),
    refused("add_sub", { ...pair, INPUT0: [1, 2, 3] }),
    refused("add_sub", { ...pair, INPUT0: [] }),
    refused("add_sub", { ...pair, INPUT0: "x" }),
    refused("add_sub", { ...pair, INPUT0: null }),
    refused("identity_matrix", { INPUT0: [1, 2, 3, 4] }),
    refused("identity_bytes", { INPUT0: ["a", "b", "c", "d", "e"] }),
  ),
  item(
    "missing inputs",
    refused("add_sub", { INPUT0: [1, 2, 3, 4] }),
    refused("add_sub", { id: "a" }),
    refused("add_sub", {}),
  ),
  item(
    "optional inputs",
    generate("optional", { A: [1, 2] }),
    generate("optional", { A: [1, 2], B: [3, 4] }),
    generate("identity_all", {}),
  ),
  ...Object.entries(acquired).map(([type, values]) =>
    item(`values of ${type}`, ...values.map((value) => generate("identity_all", `{"INPUT_${type}":${value}}`))),
  ),
  ...Object.entries(wrongFor).map(([type, values]) =>
    item(`no values of ${type}`, ...values.map((value) => refused("identity_all", `{"INPUT_${type}":${value}}`))),
  ),
  item(
    "integers outside the datatype's range",
    differs(generate("identity_all", '{"INPUT_UINT8":300}'), {
      row: "integer-range",
      status: 400,
      includes: ["value 300 is out of range for datatype UINT8 of input 'INPUT_UINT8'"],
    }),
  ),
  item(
    "other members are parameters",
    generate("report", text('"x":1,"s":"y","b":true,"d":0.5,"n":-3,"big":18446744073709551615,"":"e"')),
    generate("report", text('"low":-9223372036854775808,"lower":-9223372036854775809,"f":1e3,"one":1.0')),
    generate(
      "report",
      text('"sequence_id":5,"sequence_start":true,"priority":"x","timeout":-1,"binary_data_output":true'),
    ),
    generate("report", text('"triton_enable_empty_final_response":true,"id":""')),
    stream("report", text('"triton_enable_empty_final_response":true')),
  ),
  item(
    "members of parameters",
    generate("report", text('"parameters":{"q":1,"z":"s","id":"inner","parameters":1}')),
    generate("report", '{"parameters":{"INPUT0":[1,2]},"a":1}'),
    generate("report", text('"parameters":{}')),
  ),
  item(
    "members that cannot be mapped",
    ...[
      '"o":null',
      '"o":[1]',
      '"o":{"a":1}',
      '"parameters":3',
      '"parameters":null',
      '"parameters":[]',
      '"id":7',
      '"id":null',
    ].map((member) => refused("report", text(member))),
    refused("report", text('"parameters":{"deep":{"a":1}}')),
    refused("report", text('"parameters":{"q":1,"INPUT0":5}')),
    refused("report", text('"parameters":{"INPUT0":[3,4]}')),
  ),
  item(
    "the response has the first error",
    refused("report", '{"INPUT0":[1,2,3],"id":3}'),
    refused("report", text('"zz":null,"parameters":3')),
    refused("report", '{"INPUT0":[1,"x"],"zz":null}'),
    refused("report", '{"zz":null,"INPUT0":[1,"x"]}'),
    refused("report", '{"INPUT0":[1,"x"],"parameters":3}'),
  ),
  item(
    "equal names",
    refused("add_sub", '{"INPUT0":[1,2,3,4],"INPUT0":[9,9,9,9],"INPUT1":[1,2,3,4]}'),
    generate("report", text('"a":1,"a":2,"parameters":{"b":1,"a":3},"parameters":{"c":2},"id":"one","id":"two"')),
  ),
  item(
    "bodies that are not objects",
    ...["", "[]", "{", "3", "null", '{"a":1} x', '{"a":1,}', "x"].flatMap((body) => [
      refused("add_sub", body),
      post("/v2/models/add_sub/generate_stream", body, "error"),
    ]),
  ),
  item(
    "very deep nesting",
    newer(refused("report", text(`"a":${"[".repeat(200)}${"]".repeat(200)}`)), 400, "JSON nesting depth"),
  ),
  item(
    "codings",
    generate("add_sub", pair, { "content-encoding": "identity", "accept-encoding": "gzip" }),
    refused("add_sub", pair, { "content-encoding": "gzip" }),
    refused("add_sub", pair, { "content-encoding": "IDENTITY" }),
    post("/v2/models/add_sub/generate_stream", pair, "error", { headers: { "content-encoding": "br" } }),
    generate("add_sub", pair, { "inference-header-content-length": "5", "content-type": "text/plain" }),
  ),
  item(
    "paths",
    post("/v2/models/add_sub/generate?x=1", pair),
    refused("add_sub/versions/1/generatex", pair),
    refused("", pair),
  ),
  item(
    "errors of the model",
    ...[0, 1, 2, 3, 4, 5, 6, 7, 10].flatMap((KIND) => [refused("errors", { KIND }), stream("errors", { KIND })]),
    ...[11, 12, 13, 16].map((KIND) => refused("errors", { KIND })),
  ),
  item(
    "outputs",
    generate("odd_outputs", { KIND: 1 }),
    generate("odd_outputs", { KIND: 3 }),
    generate("scores", { INPUT0: [1, 2, 3, 4] }),
    generate("evaluates", evaluated("np.array(['a\\n\\n\\u2028é', b'\"'], dtype=object)")),
    stream("evaluates", evaluated("np.array(['a\\n\\n'], dtype=object)")),
    generate("evaluates", evaluated("np.array([[[True]]])")),
    generate("evaluates", evaluated("np.array(True)")),
    generate("evaluates", evaluated("np.array([float('nan'), float('inf')])")),
    refused("evaluates", evaluated("np.array([1.5], dtype=np.float16)")),
    stream("evaluates", evaluated("np.array([1.5], dtype=np.float16)")),
    generate("evaluates", { CODE: "pb_utils.InferenceResponse([])" }),
    generate("evaluates", { CODE: "[request.request_id(), request.parameters()]", id: "x" }),
  ),
  item(
    "ensembles",
    post("/v2/models/chain/generate", { A: [1, 2, 3, 4], B: [1, 2, 3, 4] }, "map"),
    stream("chain", { A: [1, 2, 3, 4], B: [1, 2, 3, 4] }),
    refused("failing_step", { KIND: 4 }),
    refused("failing_step", { K: 4 }),
    stream("failing_step", { K: 4 }),
  ),
];
