import assert from "node:assert/strict";
import { test } from "node:test";
import { AlgorithmRequestError } from "../payloads/algorithm-request.ts";
import type { LeapStep } from "./leap-step.ts";
import { asDouble, asText, asTexts, doubleValue, textsValue, vectorValue } from "./leap-values.ts";
import { predictSpark } from "./spark-payloads.ts";

/** Doubles a number, makes a vector of it, and splits a text: the three columns cover every structure of a response. */
const model: LeapStep = (row) => {
  const number = asDouble(row.get("number"));
  row.set("twice", doubleValue(2 * number));
  row.set("vector", vectorValue(Float64Array.of(number, 1e-5, 1e7, 0.001)));
  row.set("words", textsValue(asText(row.get("text")).split(" ")));
};
const input = [
  { name: "number", type: "double" },
  { name: "text", type: "string" },
];
const schema = (name: string, type: string, struct?: string) => ({ input, output: { name, type, struct } });
const twice = schema("twice", "double");
const vector = schema("vector", "double", "vector");
const words = schema("words", "string", "array");

interface TestRequest {
  readonly body: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly schema?: unknown;
}

function transform({ body, contentType = "application/json", accept = "", schema: input }: TestRequest) {
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const schemaText = input === undefined ? "" : JSON.stringify(input);
  const response = predictSpark({ model, schemaText }, { bytes, contentType, accept });
  return [response.contentType, Buffer.from(response.bytes).toString("utf8")];
}

function refusal(request: TestRequest) {
  try {
    transform(request);
  } catch (error) {
    assert.ok(error instanceof AlgorithmRequestError, String(error));
    return [error.status, error.message];
  }
  return assert.fail("the request was accepted");
}

test("a number is printed as Java prints it, for every accepted type", () => {
  assert.deepEqual(transform({ body: { data: [19, "a b"] }, schema: twice }), ["text/csv", "38.0"]);
  const accept = "application/jsonlines";
  assert.deepEqual(transform({ body: { data: [5e6, "a"] }, schema: twice, accept }), [accept, "1.0E7"]);
});

test("a vector or an array is returned as CSV, as features of a JSON line, or as text", () => {
  const body = { data: [1.5, "a b"] };
  const lines = "application/jsonlines";
  const text = "application/jsonlines;data=text";
  assert.deepEqual(transform({ body, schema: vector, accept: "*/*" }), ["text/csv", "1.5,1.0E-5,1.0E7,0.001"]);
  assert.deepEqual(transform({ body, schema: vector, accept: lines }), [
    lines,
    '{"features":[1.5,1.0E-5,1.0E7,0.001]}',
  ]);
  assert.deepEqual(transform({ body, schema: vector, accept: text }), [lines, '{"source":"1.5 1.0E-5 1.0E7 0.001"}']);
  assert.deepEqual(transform({ body, schema: words }), ["text/csv", "a,b"]);
  assert.deepEqual(transform({ body, schema: words, accept: lines }), [lines, '{"features":["a","b"]}']);
});

test("the schema of a request takes precedence over the schema of the container", () => {
  assert.deepEqual(transform({ body: { schema: twice, data: [1, ""] }, schema: vector }), ["text/csv", "2.0"]);
  assert.deepEqual(refusal({ body: { data: [1, ""] } }), [
    400,
    "Input schema has to be provided either via environment variable or via the request",
  ]);
});

test("a CSV request gets a response for its first record only, quoted or not", () => {
  const csv = (body: string) => transform({ body, contentType: "text/csv", schema: words })[1];
  assert.equal(csv("1,a b\n2,c"), "a,b");
  assert.equal(csv('"1","say ""x"", y"\r\n'), 'say,"x",,y');
  assert.equal(transform({ body: "3,x", contentType: "text/csv; charset=utf-8", schema: twice })[1], "6.0");
});

test("a line of a JSON lines request contains one row or a list of rows, and the first line may contain the schema", () => {
  const contentType = "application/jsonlines";
  const lines = [
    { schema: twice, data: [1, "a"] },
    {
      data: [
        [2, "b"],
        [3, "c"],
      ],
    },
  ].map((each) => JSON.stringify(each));
  assert.deepEqual(transform({ body: lines.join("\n"), contentType }), ["text/csv", "[[2.0], [4.0], [6.0]]"]);
});

test("a value that does not match the declared type of its column is rejected with Java's error text", () => {
  const column = (type: string, value: unknown, struct?: string) =>
    refusal({ body: { schema: { input: [{ name: "x", type, struct }], output: twice.output }, data: [value] } });
  assert.deepEqual(column("double", "C"), [400, 'For input string: "C"']);
  assert.deepEqual(column("int", 2 ** 31), [400, 'For input string: "2147483648"']);
  assert.deepEqual(column("byte", 128), [400, 'For input string: "128"']);
  assert.deepEqual(column("decimal", 1), [400, "Data type passed in the request is wrong for one or more columns"]);
  assert.deepEqual(column("float", [1], "vector"), [400, "Only Double type is supported for vector"]);
  assert.deepEqual(column("double", 1, "vector"), [400, "Input val is not a list but struct passed is vector"]);
  assert.deepEqual(column("string", "y"), [400, "Field number does not exist"]);
});

test("invalid types and bodies get the statuses 415 and 400 and the texts of SageMaker's container", () => {
  assert.equal(refusal({ body: "x", contentType: "application/x-npy", schema: twice })[0], 415);
  assert.equal(refusal({ body: "", contentType: "text/csv", schema: twice })[0], 400);
  assert.equal(refusal({ body: "{", schema: twice })[0], 400);
  assert.deepEqual(refusal({ body: { data: [1, ""] }, schema: twice, accept: "application/json" }), [
    400,
    "Accept value passed via request or environment variable is not valid",
  ]);
  assert.deepEqual(refusal({ body: { data: [1] }, schema: twice }), [400, "Index 1 out of bounds for length 1"]);
  assert.deepEqual(refusal({ body: { data: [1, ""] }, schema: schema("words", "double") })[0], 400);
});

test("asTexts converts every element of a list to text", () => {
  assert.deepEqual(asTexts({ kind: "list", base: "double", values: [1, 0.5] }), ["1.0", "0.5"]);
  assert.deepEqual(asTexts({ kind: "list", base: "float", values: [Math.fround(0.1)] }), ["0.1"]);
});
