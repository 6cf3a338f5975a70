import { deflateSync, gzipSync } from "node:zlib";
import type { Case, Request } from "../case.ts";
import { addSubHeader, addSubInputs, differs, floats, infer } from "../requests.ts";

const body = Buffer.from(JSON.stringify({ inputs: addSubInputs }));
const encoded = (
  name: string,
  bytes: Uint8Array,
  encoding: string,
  compare: "json" | "error" = "json",
  more: Partial<Request> = {},
): Case => ({
  name: `compression: ${name}`,
  fixture: "main",
  steps: [infer("add_sub", bytes, compare, { ...more, headers: { "content-encoding": encoding, ...more.headers } })],
});
const accepts = (accept: string): Case => ({
  name: `compression: the answer to accept-encoding ${accept}`,
  fixture: "main",
  steps: [infer("add_sub", { inputs: addSubInputs }, "status", { headers: { "accept-encoding": accept } })],
});
const header = Buffer.from(JSON.stringify(addSubHeader));
const binaryBody = gzipSync(Buffer.concat([header, floats(1, 2, 3, 4), floats(1, 1, 1, 1)]));

export const compression: readonly Case[] = [
  encoded("a gzip request", gzipSync(body), "gzip"),
  encoded("a deflate request", deflateSync(body), "deflate"),
  encoded("identity by name", body, "identity"),
  encoded("zlib data with encoding gzip", deflateSync(body), "gzip"),
  encoded("in a binary request the header length counts uncompressed bytes", binaryBody, "gzip", "json", {
    headers: { "inference-header-content-length": String(header.length) },
  }),
  encoded("an unknown encoding", body, "br", "error"),
  {
    name: "compression: an uncompressed body with encoding gzip",
    fixture: "main",
    steps: [
      differs(infer("add_sub", body, "error", { headers: { "content-encoding": "gzip" } }), {
        row: "not-compressed",
        status: 400,
        includes: ["error"],
      }),
    ],
  },
  encoded("an empty body", Buffer.alloc(0), "gzip", "error"),
  accepts("identity"),
  accepts("*;q=0"),
  {
    name: "compression: a gzip response has its content-encoding",
    fixture: "main",
    steps: [{ ...infer("add_sub", { inputs: addSubInputs }, "json", { headers: { "accept-encoding": "gzip" } }) }],
  },
  {
    name: "compression: a deflate response has its content-encoding",
    fixture: "main",
    steps: [infer("add_sub", { inputs: addSubInputs }, "json", { headers: { "accept-encoding": "deflate" } })],
  },
  {
    name: "compression: the preferred one of two encodings",
    fixture: "main",
    steps: [
      infer("add_sub", { inputs: addSubInputs }, "json", {
        headers: { "accept-encoding": "gzip;q=0.5, deflate;q=0.9" },
      }),
    ],
  },
  {
    name: "compression: in a binary response the header length counts uncompressed bytes",
    fixture: "main",
    steps: [
      infer("add_sub", { inputs: addSubInputs, parameters: { binary_data_output: true } }, "binary", {
        headers: { "accept-encoding": "gzip" },
      }),
    ],
  },
];
