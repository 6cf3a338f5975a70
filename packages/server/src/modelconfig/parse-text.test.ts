import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import { toText } from "@bufbuild/protobuf/txtpb";
import * as fc from "fast-check";
import { DataType, ModelConfigSchema } from "./message.ts";
import { parseConfigText, readConfigText } from "./parse-text.ts";

const types =
  "TYPE_INVALID, TYPE_BOOL, TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64, TYPE_INT8, TYPE_INT16, TYPE_INT32, " +
  "TYPE_INT64, TYPE_FP16, TYPE_FP32, TYPE_FP64, TYPE_STRING, TYPE_BF16";

/** Invalid configurations: the text, the position of the problem, and the message. */
const broken: readonly (readonly [string, string, string])[] = [
  ["max_bach_size: 8", "1:1", "unknown field 'max_bach_size' in ModelConfig; did you mean 'max_batch_size'?"],
  ["input { dim: 1 }", "1:9", "unknown field 'dim' in 'input[0]' (ModelInput); did you mean 'dims'?"],
  ['\n\n  max_batch_size: "8"', "3:19", `field 'max_batch_size': expected an integer, found string "8"`],
  ["max_batch_size: 1.5", "1:17", "field 'max_batch_size': expected an integer, found number 1.5"],
  [
    "max_batch_size: 4294967296",
    "1:17",
    "field 'max_batch_size': expected an integer from -2147483648 to 2147483647, found integer 4294967296",
  ],
  ["max_batch_size: 08", "1:17", "field 'max_batch_size': expected an integer, found integer 08"],
  ["name: add_sub", "1:7", "field 'name': expected a string in quotes, found 'add_sub'"],
  ['name "x"', "1:6", `field 'name': expected ':' before the value, found string "x"`],
  ['name: "x', "1:7", "field 'name': expected a string in quotes, found a string that is not closed on its line"],
  ['name: "\\q"', "1:7", `field 'name': invalid escape in string "\\q"`],
  ['name: "a" name: "b"', "1:11", "field 'name' is set more than once (first in line 1)"],
  ['name: ["a"]', "1:7", "field 'name': expected a string in quotes, found a list; this field holds one value"],
  [
    "input { data_type: TYPE_FP3 }",
    "1:20",
    `field 'input[0].data_type': expected one of ${types}, found 'TYPE_FP3'; did you mean TYPE_FP32?`,
  ],
  ["input { data_type: 99 }", "1:20", `field 'input[0].data_type': expected one of ${types}, found integer 99`],
  ["input [ { dims: [1 2] } ]", "1:20", "field 'input[0].dims': expected ',' or ']' in the list, found integer 2"],
  ["input [ { dims: [ 1 ] },\n ]", "2:2", "field 'input[1]': expected a block '{ ... }', found ']'"],
  ["input {", "1:8", "expected '}' for the '{' of line 1, found the end of the file"],
  ["input { optional: yes }", "1:19", "field 'input[0].optional': expected true or false, found 'yes'"],
  ["dynamic_batching: 5", "1:19", "field 'dynamic_batching': expected a block '{ ... }', found integer 5"],
  [
    "dynamic_batching { } sequence_batching { }",
    "1:22",
    "field 'sequence_batching' excludes 'dynamic_batching': only one 'scheduling_choice' can be set",
  ],
  [
    "dynamic_batching { max_queue_delay_microseconds: -1 }",
    "1:50",
    "field 'dynamic_batching.max_queue_delay_microseconds': expected an integer from 0 to 18446744073709551615, found - integer 1",
  ],
  ["parameters { key: 5 }", "1:19", "field 'parameters[0].key': expected a string in quotes, found integer 5"],
  ["}", "1:1", "expected a field name, found '}'"],
  ['name: "x" @', "1:11", 'expected a field name, found unexpected character "@"'],
];

suite("an invalid config.pbtxt is rejected with the position, the expected and the found token", () => {
  for (const [text, location, message] of broken) {
    test(JSON.stringify(text), () => {
      const [line, column] = location.split(":");
      assert.throws(() => parseConfigText(text, "/r/m/config.pbtxt"), {
        code: "INVALID_ARG",
        message: `failed to read text proto from /r/m/config.pbtxt: line ${line}, column ${column}: ${message}`,
      });
    });
  }

  test("every error of a file is reported, not only the first", () => {
    const { problems } = readConfigText('nam: "x"\ninput { dtype { a: [1] } dims: "x" }\nmax_batch_size: 1\noutput: 3');
    assert.deepEqual(
      problems.map((problem) => `${problem.line}:${problem.column}`),
      ["1:1", "2:9", "2:32", "4:9"],
    );
  });

  test("excessive nesting gives an error, not a crash", () => {
    const { problems } = readConfigText(
      "version_policy { specific ".repeat(1) + "optimization { cuda { ".repeat(20_000),
    );
    assert.ok(problems.length > 0 && problems.length <= 100);
    const unknown = readConfigText(`x ${"{".repeat(200_000)}`);
    assert.equal(unknown.problems.length, 2);
  });
});

suite("every spelling Triton accepts means the same", () => {
  const meaning = create(ModelConfigSchema, {
    name: "ab",
    maxBatchSize: 8,
    input: [{ name: "I", dataType: DataType.TYPE_FP32, dims: [1n, -1n], optional: true }],
    parameters: { k: { stringValue: "v" } },
  });
  const spellings: Readonly<Record<string, string>> = {
    lists:
      'name: "ab" max_batch_size: 8 input [ { name: "I" data_type: TYPE_FP32 dims: [1, -1] optional: true } ] parameters [ { key: "k" value: { string_value: "v" } } ]',
    "colons before blocks, separators":
      'name: "ab", max_batch_size: 8; input: { name: "I"; data_type: TYPE_FP32, dims: 1 dims: - 1, optional: True }; parameters: { key: "k", value { string_value: "v", } }',
    "comments, single quotes, adjacent strings":
      "# a model\nname: 'a' # split\n \"b\" max_batch_size: 8 input < name: 'I' data_type: TYPE_FP32 dims: [1,-1] optional: t > parameters { key: 'k' value { string_value: '\\166' } }",
    "enums and booleans by number, other bases, no space after numbers":
      'name: "\\x61b" max_batch_size: 010input { name: "I" data_type: 11 dims: 0x1 dims: -01 optional: 1 } parameters { value { string_value: "v" } key: "k" }',
    "byte order mark and Windows lines":
      '\ufeffname: "ab"\r\nmax_batch_size: 8\r\ninput [\r\n{ name: "I" data_type: TYPE_FP32 dims: [ 1, -1 ] optional: true }\r\n]\r\nparameters: [{ key: "k" value: { string_value: "v" } }]\r\n',
  };
  for (const [what, text] of Object.entries(spellings)) {
    test(what, () => assert.ok(equals(ModelConfigSchema, parseConfigText(text, "f"), meaning)));
  }
});

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const name = fc.string({ unit: "binary", maxLength: 12 }).filter((text) => text.isWellFormed() && text !== "__proto__");
const dataTypes = [DataType.TYPE_INVALID, DataType.TYPE_FP32, DataType.TYPE_BF16];
const float = fc.float({ noNaN: true });
const config = fc.record({
  name,
  maxBatchSize: fc.integer(),
  input: fc.array(
    fc.record({ name, dataType: fc.constantFrom(...dataTypes), dims: fc.array(int64), optional: fc.boolean() }),
    { maxLength: 3 },
  ),
  parameters: fc.dictionary(name, fc.record({ stringValue: name }), { maxKeys: 3, noNullPrototype: true }),
  schedulingChoice: fc.oneof(
    fc.record({
      case: fc.constant("dynamicBatching" as const),
      value: fc.record({ maxQueueDelayMicroseconds: uint64, preserveOrdering: fc.boolean() }),
    }),
    fc.record({
      case: fc.constant("sequenceBatching" as const),
      value: fc.record({
        controlInput: fc.constant([]),
        state: fc.constant([]),
        strategyChoice: fc.record({
          case: fc.constant("direct" as const),
          value: fc.record({ minimumSlotUtilization: float }),
        }),
      }),
    }),
  ),
});

test("a configuration printed as config.pbtxt parses to the same configuration", () => {
  fc.assert(
    fc.property(config, (init) => {
      const message = create(ModelConfigSchema, init as MessageInitShape<typeof ModelConfigSchema>);
      assert.ok(equals(ModelConfigSchema, parseConfigText(toText(ModelConfigSchema, message), "f"), message));
    }),
  );
});

test("property: any text parses or is rejected with an error", () => {
  const chunks = fc.constantFrom(
    "name",
    "input",
    "dims",
    ":",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    '"a"',
    "'",
    "1",
    "-",
    ",",
    ";",
    "#",
    "\n",
    "\\",
    "1e",
    "optional",
    "true",
    "\0",
    "parameters",
    "key",
  );
  fc.assert(
    fc.property(fc.array(chunks, { maxLength: 40 }), (parts) => {
      const { message, problems } = readConfigText(parts.join(" "));
      assert.equal(message === null, problems.length > 0);
    }),
    { numRuns: 2000 },
  );
});
