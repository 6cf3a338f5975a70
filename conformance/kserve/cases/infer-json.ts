import type { Case } from "../case.ts";
import { addSubInputs, differs, get, infer, input, newer } from "../requests.ts";

const identity = (datatype: string, data: readonly unknown[] | string, config = datatype) =>
  infer(
    "identity_all",
    typeof data === "string" ? data : { inputs: [input(`INPUT_${config}`, datatype, [data.length], data)] },
  );

const identityText = (datatype: string, shape: string, data: string) =>
  infer(
    "identity_all",
    `{"inputs":[{"name":"INPUT_${datatype}","datatype":"${datatype}","shape":${shape},"data":${data}}]}`,
  );

/** The smallest and largest numbers and their neighbours, as text so that no digit is lost. */
const numberTexts: Readonly<Record<string, string>> = {
  UINT8: "[0,1,127,128,255]",
  UINT16: "[0,1,65535]",
  UINT32: "[0,1,4294967295]",
  UINT64: "[0,1,9007199254740993,18446744073709551615]",
  INT8: "[-128,-1,0,127]",
  INT16: "[-32768,-1,0,32767]",
  INT32: "[-2147483648,-1,0,2147483647]",
  INT64: "[-9223372036854775808,-9007199254740993,0,9223372036854775807]",
  FP32: "[0.1,-0.1,0,-0.0,1,1e10,1.5e-7,16777217,3.4028234663852886e38,1e-45]",
  FP64: "[0.1,-0.1,0,1,100,1e21,1e22,1e-7,123456789012345680,5e-324,1.7976931348623157e308]",
};
/** Numbers out of the datatype's range. */
const beyondTexts: Readonly<Record<string, string>> = {
  UINT8: "[256,300]",
  INT8: "[128,-129]",
  UINT16: "[65536]",
  INT16: "[32768]",
  UINT32: "[4294967296]",
  INT32: "[2147483648]",
  UINT64: "[18446744073709551616]",
  INT64: "[9223372036854775808]",
};
const countOf = (text: string) => JSON.parse(text).length as number;

const nested = (depth: number) => identityText("INT32", "[1]", `${"[".repeat(depth)}1${"]".repeat(depth)}`);

export const inferJson: readonly Case[] = [
  { name: "json: add_sub", fixture: "main", steps: [infer("add_sub", { inputs: addSubInputs })] },
  {
    name: "json: the id is the first member of the response",
    fixture: "main",
    steps: [infer("add_sub", { id: 'req-1 "é"', inputs: addSubInputs })],
  },
  {
    name: "json: an empty id is not in the response",
    fixture: "main",
    steps: [infer("add_sub", { id: "", inputs: addSubInputs })],
  },
  {
    name: "json: unknown top-level members are ignored",
    fixture: "main",
    steps: [infer("add_sub", { colour: { deep: [1] }, inputs: addSubInputs })],
  },
  {
    name: "json: inputs in another order",
    fixture: "main",
    steps: [infer("add_sub", { inputs: addSubInputs.toReversed() })],
  },
  {
    name: "json: a named version",
    fixture: "main",
    steps: [infer("versions/versions/1", { inputs: [input("IN", "INT32", [1], [0])] })],
  },
  {
    name: "json: the highest version if the request names none",
    fixture: "main",
    steps: [infer("versions", { inputs: [input("IN", "INT32", [1], [0])] })],
  },
  {
    name: "json: the latest of 2 and 10 is 10",
    fixture: "main",
    steps: [infer("versions_latest", { inputs: [input("IN", "INT32", [1], [0])] })],
  },
  {
    name: "json: a version that the policy excludes",
    fixture: "main",
    steps: [get("/v2/models/versions_latest/versions/2", "error")],
  },
  {
    name: "json: nested data",
    fixture: "main",
    steps: [
      infer("add_sub", {
        inputs: [
          input(
            "INPUT0",
            "FP32",
            [4],
            [
              [1, 2],
              [3, 4],
            ],
          ),
          addSubInputs[1],
        ],
      }),
    ],
  },
  {
    name: "json: flat data for two dimensions",
    fixture: "main",
    steps: [infer("identity_matrix", { inputs: [input("INPUT0", "FP32", [2, 3], [1, 2, 3, 4, 5, 6])] })],
  },
  {
    name: "json: nested data for two dimensions",
    fixture: "main",
    steps: [
      infer("identity_matrix", {
        inputs: [
          input(
            "INPUT0",
            "FP32",
            [2, 3],
            [
              [1, 2, 3],
              [4, 5, 6],
            ],
          ),
        ],
      }),
    ],
  },
  {
    name: "json: no rows",
    fixture: "main",
    steps: [infer("identity_matrix", { inputs: [input("INPUT0", "FP32", [0, 3], [])] })],
  },
  ...Object.entries(beyondTexts).map(([datatype, text]): Case => {
    const step = identityText(datatype, `[${countOf(text)}]`, text);
    const difference = { row: "integer-range", status: 400, includes: [`is out of range for datatype ${datatype}`] };
    return {
      name: `json: ${datatype} outside its range`,
      fixture: "main",
      // Both servers reject numbers that need more than 64 bits.
      steps: [datatype.endsWith("64") ? { ...step, compare: "error" } : differs(step, difference)],
    };
  }),
  { name: "json: data nested 99 deep", fixture: "main", steps: [nested(99)] },
  {
    name: "json: data nested 100 deep",
    fixture: "main",
    steps: [newer(nested(100), 400, "JSON nesting depth exceeds maximum allowed limit (100)")],
  },
  {
    name: "json: an input twice",
    fixture: "main",
    steps: [infer("add_sub", { inputs: [...addSubInputs, addSubInputs[0]] }, "error")],
  },
  { name: "json: BOOL", fixture: "main", steps: [identity("BOOL", [true, false, true])] },
  ...Object.entries(numberTexts).map(([datatype, text]): Case => ({
    name: `json: ${datatype}`,
    fixture: "main",
    steps: [identityText(datatype, `[${countOf(text)}]`, text)],
  })),
  {
    name: "json: BYTES",
    fixture: "main",
    steps: [identity("BYTES", ["", "a", "grüße \u{1F600}", 'line\nbreak "quoted" \\ /'], "STRING")],
  },
  {
    name: "json: BYTES with an escaped NUL",
    fixture: "main",
    steps: [
      infer(
        "identity_all",
        '{"inputs":[{"name":"INPUT_STRING","datatype":"BYTES","shape":[1],"data":["a\\u0000b\\u001f"]}]}',
      ),
    ],
  },
  { name: "json: NaN and Infinity", fixture: "main", steps: [identityText("FP32", "[3]", "[NaN,Infinity,-Infinity]")] },
  {
    name: "json: an integer with a fraction of zero for FP64",
    fixture: "main",
    steps: [identityText("FP64", "[2]", "[1.0,-0.0]")],
  },
  { name: "json: exponents for FP32", fixture: "main", steps: [identityText("FP32", "[3]", "[1E2,1e+2,12e-1]")] },
  {
    name: "json: white space everywhere",
    fixture: "main",
    steps: [
      infer(
        "identity_all",
        ' {\n"inputs" : [ {"name" :"INPUT_INT32", "datatype":"INT32","shape":[ 2 ] ,"data":[ 1 ,\t2 ] } ]\r\n} ',
      ),
    ],
  },
  {
    name: "json: two inputs of fourteen",
    fixture: "main",
    steps: [
      infer("identity_all", { inputs: [input("INPUT_INT8", "INT8", [1], [1]), input("INPUT_FP64", "FP64", [1], [2])] }),
    ],
  },
  {
    name: "json: batch of one",
    fixture: "main",
    steps: [
      infer("add_sub_batch", {
        inputs: [input("INPUT0", "INT32", [1, 4], [1, 2, 3, 4]), input("INPUT1", "INT32", [1, 4], [4, 3, 2, 1])],
      }),
    ],
  },
  {
    name: "json: batch of four",
    fixture: "main",
    steps: [
      infer("add_sub_batch", {
        inputs: [
          input("INPUT0", "INT32", [4, 4], Array(16).fill(2)),
          input("INPUT1", "INT32", [4, 4], Array(16).fill(1)),
        ],
      }),
    ],
  },
  {
    name: "json: reshape to a scalar per row",
    fixture: "main",
    steps: [infer("reshaped", { inputs: [input("INPUT0", "INT32", [3, 1], [1, 2, 3])] })],
  },
  {
    name: "json: variable dimension in a batch",
    fixture: "main",
    steps: [infer("identity_batch", { inputs: [input("INPUT0", "FP32", [2, 2], [1, 2, 3, 4])] })],
  },
  {
    name: "json: an optional input left out",
    fixture: "main",
    steps: [infer("optional", { inputs: [input("A", "INT32", [2], [1, 2])] })],
  },
  {
    name: "json: an optional input given",
    fixture: "main",
    steps: [infer("optional", { inputs: [input("A", "INT32", [2], [1, 2]), input("B", "INT32", [2], [10, 20])] })],
  },
  { name: "json: the arguments of initialize", fixture: "main", steps: [infer("arguments", { inputs: [] }, "error")] },
  {
    name: "json: strings through a model",
    fixture: "main",
    steps: [infer("upper", { inputs: [input("TEXT", "BYTES", [3], ["ab", "", "c d"])] })],
  },
  {
    name: "json: auto-completed model",
    fixture: "main",
    steps: [infer("auto_without_config", { inputs: [input("INPUT0", "FP32", [1, 4], [1, 2, 3, 4])] })],
  },
  {
    name: "json: an unusual content type is ignored",
    fixture: "main",
    steps: [infer("add_sub", { inputs: addSubInputs }, "json", { headers: { "content-type": "text/html" } })],
  },
];
