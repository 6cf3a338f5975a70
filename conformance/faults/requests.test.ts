/** Malformed requests: each gets its own error, and the next request succeeds. */
import assert from "node:assert/strict";
import { deflateRawSync, gzipSync } from "node:zlib";
import { after, before, test } from "node:test";
import { assertEchoes, faultyRequest, errorOf, infer, inferPath, textOf } from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { residentBytes } from "./processes.ts";
import { openServing, type Serving } from "./serving.ts";
import { sendBytes } from "./wire.ts";

let serving: Serving;
let port: number;
before(async () => {
  serving = await openServing({ write: ({ repository }) => writeFaultyModel(repository, "faulty") });
  port = serving.server.httpPort;
});
after(async () => {
  await serving[Symbol.asyncDispose]();
});

type Headers = Readonly<Record<string, string>>;
type Body = string | Uint8Array;
interface Sent {
  readonly body: Body;
  readonly headers?: Headers;
}

const what = { name: "DO", datatype: "BYTES", shape: [1], data: ["echo"] };
const value = { name: "VALUE", datatype: "FP32", shape: [2], data: [1, 2] };
const json = (...inputs: object[]): Sent => ({ body: JSON.stringify({ inputs }) });
/** A JSON header and the bytes after it; `stated` is the length that the client claims. */
function binary(inputs: readonly object[], tail: Uint8Array, stated?: string): Sent {
  const header = Buffer.from(JSON.stringify({ inputs }));
  const headers = { "inference-header-content-length": stated ?? String(header.length) };
  return { body: Buffer.concat([header, tail]), headers };
}
const inTail = (name: string, datatype: string, shape: readonly number[], byteLength: number | string) => ({
  name,
  datatype,
  shape,
  parameters: { binary_data_size: byteLength },
});
const prefixed = (length: number, text: string) => {
  const bytes = Buffer.alloc(4 + text.length);
  bytes.writeUInt32LE(length);
  bytes.write(text, 4);
  return bytes;
};
const compressed = (body: Uint8Array): Sent => ({ body, headers: { "content-encoding": "gzip" } });

/** The texts are Triton's, which responds with 500 to most requests that it cannot parse. */
const refused: readonly [sentence: string, sent: Sent, status: number, text: string][] = [
  [
    "a tail shorter than its tensors",
    binary([what, inTail("VALUE", "FP32", [4], 16)], Buffer.alloc(12)),
    400,
    "unexpected size for input 'VALUE', expecting 4 additional bytes for model 'faulty'",
  ],
  [
    "a tail longer than its tensors",
    binary([what, inTail("VALUE", "FP32", [2], 8)], Buffer.alloc(9)),
    400,
    "unexpected additional input data for model 'faulty'",
  ],
  [
    "a header length greater than the body",
    binary([what, value], Buffer.alloc(0), "100000"),
    400,
    "inference header size should be in range (0, 133), got: 100000",
  ],
  [
    "a negative header length",
    binary([what, value], Buffer.alloc(0), "-1"),
    400,
    "inference header size should be in range (0, 133), got: -1",
  ],
  [
    "a header length that is not a number",
    binary([what, value], Buffer.alloc(0), "many"),
    400,
    "Unable to parse Inference-Header-Content-Length, got: many",
  ],
  [
    "a header length in the middle of the JSON",
    binary([what, value], Buffer.alloc(0), "20"),
    500,
    "failed to parse the request JSON buffer: Missing a closing quotation mark in string. at 20",
  ],
  [
    "a binary size that is not its shape's",
    binary([what, inTail("VALUE", "FP32", [3], 8)], Buffer.alloc(8)),
    400,
    "[request id: <id_unknown>] input byte size mismatch for input 'VALUE' for model 'faulty'. Expected 12, got 8",
  ],
  [
    "a negative binary size",
    binary([what, inTail("VALUE", "FP32", [2], -8)], Buffer.alloc(8)),
    500,
    "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as unsigned-integer",
  ],
  [
    "a binary size of 2^63",
    binary([what, inTail("VALUE", "FP32", [2], 2 ** 63)], Buffer.alloc(8)),
    400,
    "unexpected size for input 'VALUE', expecting 9223372036854776000 additional bytes for model 'faulty'",
  ],
  [
    "a binary size in words",
    binary([what, inTail("VALUE", "FP32", [2], "eight")], Buffer.alloc(8)),
    500,
    "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as unsigned-integer",
  ],
  [
    "a string longer than its tensor",
    binary([value, inTail("DO", "BYTES", [1], 8)], prefixed(4_000_000_000, "echo")),
    400,
    "expecting string of length 4000000000 but only 4 bytes available",
  ],
  [
    "a string cut inside its length",
    binary([value, inTail("DO", "BYTES", [1], 3)], Buffer.alloc(3)),
    400,
    "[request id: <id_unknown>] incomplete string length indicator for inference input 'DO' for model 'faulty', expecting 4 bytes but only 3 bytes available.",
  ],
  [
    "two strings where the shape has one",
    binary([value, inTail("DO", "BYTES", [1], 16)], Buffer.concat([prefixed(4, "echo"), prefixed(4, "echo")])),
    400,
    "[request id: <id_unknown>] unexpected number of string elements 2 for inference input 'DO' for model 'faulty', expecting 1",
  ],
  [
    "fewer numbers than the shape says",
    json(what, { ...value, shape: [3] }),
    500,
    "Unable to parse 'data': Shape does not match true shape of 'data' field",
  ],
  [
    "more numbers than the shape says",
    json(what, { ...value, shape: [1] }),
    500,
    "Unable to parse 'data': Shape does not match true shape of 'data' field",
  ],
  [
    "a shape of 2^62 elements over two numbers",
    json(what, { ...value, shape: [2 ** 31, 2 ** 31] }),
    400,
    "invalid shape for input 'VALUE': shape [2147483648,2147483648] causes total element count to exceed maximum size of 9223372036854775807",
  ],
  [
    "a shape whose product overflows to its data's length",
    json(what, { ...value, shape: [2, 2 ** 32, 2 ** 32] }),
    400,
    "invalid shape for input 'VALUE': shape [2,4294967296,4294967296] causes total element count to exceed maximum size of 9223372036854775807",
  ],
  [
    "a negative dimension",
    json(what, { ...value, shape: [-2] }),
    500,
    "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
  ],
  [
    "a dimension that is not an integer",
    json(what, { ...value, shape: [2.5] }),
    500,
    "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
  ],
  [
    "a shape of another rank than the model's",
    json(what, { ...value, shape: [1, 2] }),
    400,
    "[request id: <id_unknown>] unexpected shape for input 'VALUE' for model 'faulty'. Expected [-1], got [1,2]. ",
  ],
  [
    "another dimension than the model's",
    json({ ...what, shape: [2], data: ["a", "b"] }, value),
    400,
    "[request id: <id_unknown>] unexpected shape for input 'DO' for model 'faulty'. Expected [1], got [2]. ",
  ],
  [
    "no shape",
    json(what, { name: "VALUE", datatype: "FP32", data: [1] }),
    500,
    "Unable to parse 'shape': attempt to access non-existing object member 'shape'",
  ],
  [
    "another datatype than the model's",
    json(what, { ...value, datatype: "INT32" }),
    400,
    "[request id: <id_unknown>] inference input 'VALUE' data-type is 'INT32', but model 'faulty' expects 'FP32'",
  ],
  [
    "a datatype that does not exist",
    json(what, { ...value, datatype: "FP33" }),
    400,
    "invalid datatype for input VALUE",
  ],
  [
    "text where numbers belong",
    json(what, { ...value, data: ["1", "2"] }),
    500,
    "Unable to parse 'data': attempt to access JSON non-number as double",
  ],
  [
    "numbers instead of texts",
    json({ ...what, data: [7] }, value),
    500,
    "Unable to parse JSON bytes array: attempt to access JSON non-string as string",
  ],
  [
    "null where a number belongs",
    json(what, { ...value, data: [1, null] }),
    500,
    "Unable to parse 'data': attempt to access JSON non-number as double",
  ],
  [
    "NaN as text",
    json(what, { ...value, data: ["NaN", 1] }),
    500,
    "Unable to parse 'data': attempt to access JSON non-number as double",
  ],
  [
    "a number out of the range of floats",
    { body: JSON.stringify({ inputs: [what, value] }).replace("[1,2]", "[1,1e999]") },
    500,
    "failed to parse the request JSON buffer: Number too big to be stored in double. at 128",
  ],
  [
    "an input that the model does not have",
    json(what, value, { ...value, name: "OTHER" }),
    400,
    "[request id: <id_unknown>] expected 2 inputs but got 3 inputs for model 'faulty'.",
  ],
  ["an input twice", json(what, value, value), 400, "input 'VALUE' already exists in request"],
  [
    "a missing input",
    json(what),
    400,
    "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'faulty'. Got input(s) ['DO'], but missing required input(s) ['VALUE']. Please provide all required input(s).",
  ],
  [
    "no inputs at all",
    { body: "{}" },
    500,
    "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
  ],
  [
    "an output that the model does not have",
    { body: JSON.stringify({ inputs: [what, value], outputs: [{ name: "NOPE" }] }) },
    400,
    "unexpected inference output 'NOPE' for model 'faulty'",
  ],
  [
    "a shared memory region that is not registered",
    json(what, { ...value, data: undefined, parameters: { shared_memory_region: "r", shared_memory_byte_size: 8 } }),
    404,
    "Unable to find shared memory region: 'r'",
  ],
  [
    "an empty body",
    { body: "" },
    400,
    "[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced but got 2 inputs in 'faulty' model configuration",
  ],
  [
    "JSON that is cut off",
    { body: JSON.stringify({ inputs: [what, value] }).slice(0, -7) },
    500,
    "failed to parse the request JSON buffer: Invalid value. at 126",
  ],
  [
    "a body that is not JSON",
    { body: "\u0000\u0001\u0002" },
    500,
    "failed to parse the request JSON buffer: Invalid value. at 0",
  ],
  [
    "a list where an object belongs",
    { body: "[]" },
    500,
    "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
  ],
  [
    "bytes after the JSON",
    { body: `${faultyRequest("echo")}}` },
    500,
    "failed to parse the request JSON buffer: The document root must not be followed by other values. at 135",
  ],
  [
    "invalid UTF-8 in a name",
    {
      body: Buffer.concat([
        Buffer.from('{"inputs":[{"name":"'),
        Buffer.from([0xff, 0xfe]),
        Buffer.from('","datatype":"FP32","shape":[1],"data":[1]}]}'),
      ]),
    },
    400,
    "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'faulty'. Got input(s) ['",
  ],
  [
    "brackets nested a million deep",
    { body: `{"inputs":${"[".repeat(1_000_000)}` },
    400,
    "JSON nesting depth exceeds maximum allowed limit (100)",
  ],
  [
    "ten thousand unknown inputs",
    json(what, value, ...Array.from({ length: 10_000 }, (_, i) => ({ ...value, name: `X${i}` }))),
    400,
    "[request id: <id_unknown>] expected 2 inputs but got 10002 inputs for model 'faulty'.",
  ],
  [
    "gzip that is none",
    compressed(Buffer.from(faultyRequest("echo"))),
    400,
    "failed to decompress the request body: incorrect header check",
  ],
  [
    "gzip that is cut off",
    compressed(gzipSync(faultyRequest("echo")).subarray(0, 40)),
    400,
    "failed to decompress the request body: unexpected end of file",
  ],
  [
    "gzip that expands without end",
    compressed(gzipSync(Buffer.alloc(200 * 2 ** 20, 0x20), { level: 1 })),
    400,
    "Decompressed data size exceeds the maximum allowed value of 67108864 bytes. Use --http-max-input-size to increase the limit.",
  ],
  [
    "an unknown encoding",
    { body: deflateRawSync(faultyRequest("echo")), headers: { "content-encoding": "br" } },
    501,
    "Unsupported compression type",
  ],
];

for (const [sentence, sent, status, text] of refused) {
  test(`refused: ${sentence}`, async () => {
    const response = await infer(
      port,
      "faulty",
      sent.body,
      sent.headers === undefined ? {} : { headers: sent.headers },
    );
    const error = errorOf(response, status);
    assert.ok(error.includes(text), error);
    await assertEchoes(port, "faulty");
  });
}

const head = `POST ${inferPath("faulty")} HTTP/1.1\r\nHost: x\r\n`;
const fields = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: ${"b".repeat(20)}\r\n`).join("");
const headersTooLong = "request header lines exceed the maximum allowed size";
const malformed = "malformed HTTP request: Parse Error: ";
const bytes: readonly [sentence: string, bytes: string, status: number, text: string][] = [
  [
    "a Content-Length that is not a number",
    `${head}Content-Length: 12x\r\n\r\n`,
    400,
    "Unable to parse Content-Length, got: 12x",
  ],
  ["a negative Content-Length", `${head}Content-Length: -5\r\n\r\n`, 400, "Unable to parse Content-Length, got: -5"],
  [
    "two Content-Lengths",
    `${head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
    400,
    `${malformed}Duplicate Content-Length`,
  ],
  [
    "a Content-Length together with chunks",
    `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
    "Content-Length and Transfer-Encoding must not both be given",
  ],
  [
    "a chunk without a size",
    `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n`,
    400,
    `${malformed}Invalid character in chunk size`,
  ],
  ["a very large header", `${head}X-Big: ${"a".repeat(70_000)}\r\n\r\n`, 431, headersTooLong],
  ["thousands of headers", `${head}${fields(5000)}\r\n`, 431, headersTooLong],
  ["a huge path", `GET /${"p".repeat(70_000)} HTTP/1.1\r\n\r\n`, 431, headersTooLong],
  [
    "a body announced with 100 GB",
    `${head}Content-Length: 99999999999\r\n\r\n`,
    400,
    "request JSON size of 99999999999 bytes exceeds the maximum allowed input size of 67108864 bytes. Use --http-max-input-size to increase the limit.",
  ],
  [
    "a TLS greeting",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    400,
    `${malformed}Invalid method encountered`,
  ],
  ["another HTTP version", `GET / HTTP/9.9\r\n\r\n`, 400, `${malformed}Invalid HTTP version`],
];
for (const [sentence, sent, status, text] of bytes) {
  test(`refused on the wire: ${sentence}`, async () => {
    const response = await sendBytes(port, sent);
    assert.deepEqual(response, { status, body: JSON.stringify({ error: text }) });
    await assertEchoes(port, "faulty");
  });
}

test("NaN and the infinities pass as JSON words and as bytes, bit for bit", async () => {
  const words = faultyRequest("echo").replace("[1,2,3]", "[NaN,Infinity,-Infinity]");
  const response = await infer(port, "faulty", words);
  assert.match(response.body.toString(), /"data":\[NaN,Infinity,-Infinity\]/);
  const payload = Buffer.from("0100c07fffffff7f000080ff00000080", "hex");
  const sent = binary([what, inTail("VALUE", "FP32", [4], 16)], payload);
  const wished = Buffer.from(
    JSON.stringify({
      inputs: [what, inTail("VALUE", "FP32", [4], 16)],
      outputs: [{ name: "OUT", parameters: { binary_data: true } }],
    }),
  );
  const echoed = await infer(port, "faulty", Buffer.concat([wished, payload]), {
    headers: { ...sent.headers, "inference-header-content-length": String(wished.length) },
  });
  assert.equal(echoed.status, 200, echoed.body.toString());
  const headerBytes = Number(echoed.headers["inference-header-content-length"]);
  assert.deepEqual(echoed.body.subarray(headerBytes), payload);
});

test("only the valid requests reached the model, and the server has released the memory of the others", async () => {
  const executed = textOf(await infer(port, "faulty", faultyRequest("executed", { id: "last" }))).split(",");
  // An echo after each rejection, the two above, and this one.
  assert.equal(executed.length, refused.length + bytes.length + 2 + 1);
  const size = residentBytes(serving.server.pid);
  assert.ok(size < 1024 * 2 ** 20, `the server has ${size} bytes`);
});
