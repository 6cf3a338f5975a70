import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ChunkFramingError, ChunkSizeError, decodeAwsChunked } from "./aws-chunked.ts";
import { threadCpuMs } from "@galatea/base/core/cpu-time-fixture.ts";
import { emptySha256, hmacSha256, sha256Hex, signingKey } from "./signature.ts";

async function* segments(data: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (data.byteLength + 1)).sort((a, b) => a - b), data.byteLength]) {
    if (cut > from) yield data.subarray(from, cut);
    from = Math.max(from, cut);
  }
}

async function decode(data: Buffer, cuts: readonly number[], chain: Parameters<typeof decodeAwsChunked>[1]["chain"]) {
  const trailers = new Map<string, string>();
  const chunks: Buffer[] = [];
  for await (const chunk of decodeAwsChunked(segments(data, cuts), { chain, trailers })) chunks.push(chunk);
  return { body: Buffer.concat(chunks), trailers };
}

// The example on Amazon's page "Signature calculations: chunked upload".
const key = signingKey("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524", "us-east-1", "s3");
const chain = {
  key,
  timestamp: "20130524T000000Z",
  scope: "20130524/us-east-1/s3/aws4_request",
  seed: "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
};
const example = Buffer.concat([
  Buffer.from("10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n"),
  Buffer.alloc(65_536, "a"),
  Buffer.from("\r\n400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n"),
  Buffer.alloc(1024, "a"),
  Buffer.from("\r\n0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n"),
]);

test("signed chunks of AWS's published example are accepted, and any flipped byte is rejected", async () => {
  assert.deepEqual((await decode(example, [1, 50, 90, 70_000], chain)).body, Buffer.alloc(66_560, "a"));
  for (const at of [100, 66_000, 40, example.byteLength - 10]) {
    const tampered = Buffer.from(example);
    tampered[at] = (tampered[at] ?? 0) ^ 1;
    await assert.rejects(decode(tampered, [], chain));
  }
});

test("a trailer is signed after the last chunk", async () => {
  const sign = (...lines: string[]) => hmacSha256(key, lines.join("\n")).toString("hex");
  const last = sign("AWS4-HMAC-SHA256-PAYLOAD", chain.timestamp, chain.scope, chain.seed, emptySha256, emptySha256);
  const trailer = "x-amz-checksum-crc32:AAAAAA==";
  const signature = sign("AWS4-HMAC-SHA256-TRAILER", chain.timestamp, chain.scope, last, sha256Hex(`${trailer}\n`));
  const body = (input: string) =>
    Buffer.from(`0;chunk-signature=${last}\r\n${trailer}\r\nx-amz-trailer-signature:${input}\r\n\r\n`);
  assert.equal((await decode(body(signature), [], chain)).trailers.get("x-amz-checksum-crc32"), "AAAAAA==");
  await assert.rejects(decode(body("0".repeat(64)), [], chain), /does not match/);
});

test("property: a body in any chunks and reads is decoded, and a truncated one is never accepted", async () => {
  const input = fc.tuple(
    fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 5 }),
    fc.array(fc.nat()),
  );
  await fc.assert(
    fc.asyncProperty(input, fc.nat(), async ([chunks, cuts], cutAt) => {
      const framed = chunks.map((chunk) =>
        Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]),
      );
      const complete = Buffer.concat([...framed, Buffer.from("0\r\nx-amz-checksum-crc32:abc\r\n\r\n")]);
      const { body, trailers } = await decode(complete, cuts, null);
      assert.deepEqual(body, Buffer.concat(chunks));
      assert.equal(trailers.get("x-amz-checksum-crc32"), "abc");
      const length = Buffer.concat(framed).byteLength;
      await assert.rejects(decode(complete.subarray(0, cutAt % (length + 1)), cuts, null), ChunkFramingError);
    }),
  );
});

test("a chunk header without an end is rejected and not buffered", async () => {
  async function* endless(): AsyncGenerator<Buffer> {
    for (;;) yield Buffer.alloc(1000, "f");
  }
  const read = async () => {
    for await (const chunk of decodeAwsChunked(endless(), { chain: null, trailers: new Map() })) assert.ok(chunk);
  };
  await assert.rejects(read(), /too long/);
});

test("a megabyte in chunks of one byte is rejected early, and one in a thousand small chunks is accepted", async () => {
  const chunked = (byteLength: number, count: number) =>
    Buffer.from(`${`${byteLength.toString(16)}\r\n${"a".repeat(byteLength)}\r\n`.repeat(count)}0\r\n\r\n`);
  const startMs = threadCpuMs();
  await assert.rejects(decode(chunked(1, 2 ** 20), [], null), ChunkSizeError);
  // Decoding all chunks would take seconds, so the decoder must reject the body early.
  assert.ok(threadCpuMs() - startMs < 500);
  assert.equal((await decode(chunked(1000, 1000), [], null)).body.byteLength, 1_000_000);
});
