import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ByteBudget, ByteLease, InferenceError } from "@galatea/base";
import { completeConfig, parseConfigText } from "../../modelconfig/index.ts";
import { JsonScanner, JsonWalk } from "../../tensor/index.ts";
import { mapGenerateRequest } from "./generate-mapping.ts";
import { inferInputShape } from "./input-shape.ts";

const config = completeConfig(
  parseConfigText(
    `backend: "python" max_batch_size: 0
    input { name: "NUMBERS" data_type: TYPE_INT32 dims: [-1] }
    input { name: "TEXT" data_type: TYPE_STRING dims: [-1] }
    output { name: "OUT" data_type: TYPE_INT32 dims: [1] }`,
    "config.pbtxt",
  ),
  { directoryName: "m", servedName: "m", versionEntries: ["model.py"], gpuCount: 0 },
);

function mapped(text: string, memoryBytes = Infinity, inputBytesMax = 2 ** 26) {
  using memory = new ByteLease(new ByteBudget(memoryBytes));
  return mapGenerateRequest(new JsonScanner(Buffer.from(text)), { config, inputBytesMax, memory });
}

test("a shape has as many elements as the request, and the configured dimensions", () => {
  const dimensions = fc.array(fc.oneof(fc.constant(-1), fc.integer({ min: 1, max: 5 })), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(dimensions, fc.nat(200), (configured, count) => {
      const shape = inferInputShape(configured, count);
      const fixed = configured.filter((dimension) => dimension >= 0).reduce((left, right) => left * right, 1);
      const isEven = configured.includes(-1) ? count % fixed === 0 : count === fixed;
      assert.equal(shape !== null, isEven);
      if (shape === null) return;
      assert.equal(
        shape.reduce((left, right) => left * right, 1),
        count,
      );
      for (const [index, dimension] of configured.entries()) {
        if (dimension >= 0) assert.equal(shape[index], dimension);
        else if (index !== configured.lastIndexOf(-1)) assert.equal(shape[index], 1);
      }
    }),
  );
});

const value = fc.oneof(fc.string({ unit: "grapheme" }), fc.boolean(), fc.integer());
const name = fc.string({ unit: "grapheme" }).filter((text) => !["id", "parameters", "NUMBERS", "TEXT"].includes(text));

test("every member is the id, an input or a parameter, whatever their order, names and white space", () => {
  const request = fc.record(
    {
      id: fc.string({ unit: "grapheme" }),
      NUMBERS: fc.oneof(fc.integer(), fc.array(fc.integer())),
      TEXT: fc.oneof(fc.string(), fc.array(fc.string())),
      parameters: fc.dictionary(name, value),
      otherMembers: fc.dictionary(name, value),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(request, fc.boolean(), fc.nat(3), ({ otherMembers = {}, ...members }, otherMembersFirst, indent) => {
      const entries: [string, unknown][] = Object.entries(members);
      entries.splice(otherMembersFirst ? 0 : entries.length, 0, ...Object.entries(otherMembers));
      const text = JSON.stringify(Object.fromEntries(entries), null, indent);
      const { id, parameters, inputs, failure, scanner } = mapped(text);
      assert.equal(failure, null);
      assert.equal(id, members.id ?? "");
      // If a name is a member of the request and of `parameters`, the later one in the text is used. JavaScript preserves the text's order
      // of members.
      const expected = new Map<string, unknown>();
      for (const [key, member] of Object.entries(JSON.parse(text) as Record<string, unknown>)) {
        if (key === "NUMBERS" || key === "TEXT") continue;
        if (key !== "parameters") expected.set(key, member);
        else for (const [inner, nested] of Object.entries(member as object)) expected.set(inner, nested);
      }
      const plain = [...parameters].map(([key, got]) => [key, typeof got === "bigint" ? Number(got) : got] as const);
      assert.deepEqual(new Map<string, unknown>(plain), expected);
      for (const { name: input, dataAt, dataEnd, elementCount } of inputs) {
        const sent = members[input as "NUMBERS" | "TEXT"];
        const segment = Buffer.from(scanner.bytes.subarray(dataAt, dataEnd)).toString();
        assert.deepEqual(JSON.parse(segment), sent);
        assert.equal(elementCount, Array.isArray(sent) ? sent.length : 1);
      }
      assert.equal(inputs.length, Number(members.NUMBERS !== undefined) + Number(members.TEXT !== undefined));
    }),
  );
});

test("any text is mapped or rejected with an InferenceError", () => {
  const chunk = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    '"id"',
    '"parameters"',
    '"NUMBERS"',
    ":",
    ",",
    "1",
    '"x"',
    "null",
    " ",
  );
  const text = fc.array(chunk, { maxLength: 30 }).map((chunks) => chunks.join(""));
  fc.assert(
    fc.property(fc.oneof(text, fc.json(), fc.string()), (document) => {
      try {
        mapped(document);
      } catch (error) {
        assert.ok(error instanceof InferenceError, String(error));
      }
    }),
  );
});

test("parameters beyond the memory budget are rejected before they are allocated", () => {
  const members = Array.from({ length: 100_000 }, (_, index) => `"${index}":1`).join(",");
  assert.equal(mapped(`{${members}}`).parameters.size, 100_000);
  const { failure, parameters } = mapped(`{"parameters":{${members}}}`, 2 ** 20);
  assert.equal(failure?.reason, "memory-full");
  assert.ok(parameters.size < 20_000);
  const tooMany = { code: "INVALID_ARG", message: "a request has at most 100000 parameters and dimensions" };
  assert.throws(() => mapped(`{${members},"a":1}`), tooMany);
  assert.match(mapped(`{"parameters":{${members}}}`).failure?.message ?? "", /a request has at most 100000 /);
});

test("a document that was validated before is mapped like any other", () => {
  const numbers = Array.from({ length: 20_000 }, (_, index) => index);
  const text = JSON.stringify({ NUMBERS: numbers, TEXT: [["a"], ["b"]], extra: 1, parameters: { more: [] } });
  using memory = new ByteLease(new ByteBudget(Infinity));
  const scanner = new JsonScanner(Buffer.from(text));
  const walk = new JsonWalk(scanner);
  while (!walk.advance(1000));
  const { scanner: _, ...walked } = mapGenerateRequest(scanner, { config, inputBytesMax: 2 ** 26, memory });
  const { scanner: __, ...plain } = mapped(text);
  assert.deepEqual(walked, plain);
  assert.deepEqual(walked.inputs[0]?.shape, [20_000]);
});

test("a repeated input is rejected at any position; of repeated parameters of one object the first counts", () => {
  const twice = "[request id: <id_unknown>] input 'NUMBERS' already exists in request";
  for (const text of ['{"NUMBERS":1,"NUMBERS":2}', '{"NUMBERS":1,"parameters":{"NUMBERS":2}}']) {
    const { failure } = mapped(text);
    assert.deepEqual(
      [failure?.code, failure?.message.replace(/^Converting keyword: 'parameters': /, "")],
      ["INVALID_ARG", twice],
    );
  }
  assert.match(mapped('{"id":"r","NUMBERS":1,"NUMBERS":2}').failure?.message ?? "", /^\[request id: r\] input/);
  const { parameters } = mapped('{"a":1,"a":2,"b":1,"parameters":{"b":2,"b":3},"parameters":{"b":4}}');
  assert.deepEqual(Object.fromEntries(parameters), { a: 1n, b: 2n });
});

test("an input takes as many bytes as its elements or string texts need, and no more than the limit", () => {
  assert.equal(mapped('{"NUMBERS":[1,2,3]}', Infinity, 12).failure, null);
  assert.match(
    mapped('{"NUMBERS":[1,2,3]}', Infinity, 11).failure?.message ?? "",
    /^JSON input 'NUMBERS' has a byte_size \(12 bytes\) that exceeds the maximum allowed value of 11 bytes\./,
  );
  assert.equal(mapped('{"TEXT":"abc"}', Infinity, 5).failure, null);
  assert.match(
    mapped('{"TEXT":"abc"}', Infinity, 4).failure?.message ?? "",
    /^JSON input 'TEXT' has a byte_size \(5 bytes\)/,
  );
});
