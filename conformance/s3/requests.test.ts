/** Requests that no SDK sends: documents, arguments and framings that are rejected with S3's codes, and leave no files. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../faults/until.ts";
import { started, type StartedServer } from "./started-server.ts";

let server: StartedServer;
before(async () => {
  server = await started({});
  await fetch(`${server.url}/bkt`, { method: "PUT" });
  await fetch(`${server.url}/bkt/k`, { method: "PUT", body: "hello" });
});
after(async () => {
  await server[Symbol.asyncDispose]();
});

interface ReceivedResponse {
  readonly status: number;
  readonly code: string;
}

async function answerTo(path: string, request: RequestInit): Promise<ReceivedResponse> {
  const reply = await fetch(`${server.url}${path}`, request);
  return { status: reply.status, code: /<Code>(\w+)</.exec(await reply.text())?.[1] ?? "" };
}

const documents = {
  "an element named __proto__": "<Delete><__proto__>x</__proto__></Delete>",
  "an element named constructor": "<Delete><constructor><Key>k</Key></constructor></Delete>",
  "5000 elements within each other": `<Delete>${"<a>".repeat(5000)}${"</a>".repeat(5000)}</Delete>`,
  "a root named constructor": "<constructor/>",
  "an entity of its own": '<!DOCTYPE d [<!ENTITY a "b">]><Delete><Object><Key>&a;</Key></Object></Delete>',
  "a key that is an element": "<Delete><Object><Key><Key>k</Key></Key></Object></Delete>",
};

for (const [name, body] of Object.entries(documents)) {
  test(`a document with ${name} is malformed`, async () => {
    const response = await answerTo("/bkt?delete", { method: "POST", body });
    assert.deepEqual(response, { status: 400, code: "MalformedXML" });
    assert.equal((await fetch(`${server.url}/bkt/k`)).status, 200);
  });
}

const framed = (trailer: string, announced: string): RequestInit => ({
  method: "PUT",
  headers: {
    "Content-Encoding": "aws-chunked",
    "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "x-amz-decoded-content-length": "5",
    "x-amz-trailer": announced,
  },
  body: `5\r\nhello\r\n0\r\n${trailer}\r\n`,
});

const putHeaders = (headers: Record<string, string>): RequestInit => ({ method: "PUT", headers, body: "hello" });

const refusals: readonly { what: string; path: string; request: RequestInit; result: ReceivedResponse }[] = [
  {
    what: "a trailer that was announced and does not come",
    path: "/bkt/new",
    request: framed("", "x-amz-checksum-crc32"),
    result: { status: 400, code: "MalformedTrailerError" },
  },
  {
    what: "another trailer than was announced",
    path: "/bkt/new",
    request: framed("x-amz-checksum-crc32:NhCmhg==\r\n", "x-amz-checksum-sha1"),
    result: { status: 400, code: "MalformedTrailerError" },
  },
  {
    what: "a trailer that holds no checksum",
    path: "/bkt/new",
    request: framed("x-amz-checksum-crc32:NhCm\r\n", "x-amz-checksum-crc32"),
    result: { status: 400, code: "InvalidRequest" },
  },
  {
    what: "a trailer announced for a body that is not chunked",
    path: "/bkt/new",
    request: putHeaders({ "x-amz-trailer": "x-amz-checksum-crc32" }),
    result: { status: 400, code: "MalformedTrailerError" },
  },
  {
    what: "a condition that writes do not have",
    path: "/bkt/new",
    request: putHeaders({ "If-Unmodified-Since": "Sat, 21 Nov 2026 12:00:00 GMT" }),
    result: { status: 501, code: "NotImplemented" },
  },
  {
    what: "a condition that deletions do not have",
    path: "/bkt/k",
    request: { method: "DELETE", headers: { "If-None-Match": "*" } },
    result: { status: 501, code: "NotImplemented" },
  },
  {
    what: "a deletion whose date is none",
    path: "/bkt/k",
    request: { method: "DELETE", headers: { "x-amz-if-match-last-modified-time": "yesterday" } },
    result: { status: 400, code: "InvalidArgument" },
  },
  {
    what: "a write at an offset",
    path: "/bkt/k",
    request: putHeaders({ "x-amz-write-offset-bytes": "5" }),
    result: { status: 501, code: "NotImplemented" },
  },
  {
    what: "a page of zero buckets",
    path: "/?max-buckets=0",
    request: {},
    result: { status: 400, code: "InvalidArgument" },
  },
  {
    what: "an unknown subresource",
    path: "/bkt?novelty",
    request: {},
    result: { status: 501, code: "NotImplemented" },
  },
];

for (const { what, path, request, result: answer } of refusals) {
  test(`${what} is refused, and changes nothing`, async () => {
    assert.deepEqual(await answerTo(path, request), answer);
    assert.equal((await fetch(`${server.url}/bkt/new`)).status, 404);
    assert.equal(await (await fetch(`${server.url}/bkt/k`)).text(), "hello");
  });
}

test("a part's number is written in decimal digits", async () => {
  const started = await (await fetch(`${server.url}/bkt/parts?uploads`, { method: "POST" })).text();
  const uploadId = /<UploadId>([^<]+)</.exec(started)?.[1];
  const put = (number: string) =>
    answerTo(`/bkt/parts?uploadId=${uploadId}&partNumber=${number}`, { method: "PUT", body: "x" });
  for (const number of ["0x1", "1e1", "%201", "+1", "1.0", "", "0", "10001", "-1"])
    assert.deepEqual(await put(number), { status: 400, code: "InvalidArgument" }, number);
  assert.deepEqual(await put("1"), { status: 200, code: "" });
});

test("a trailer that was announced is kept with the object", async () => {
  const sha1 = createHash("sha1").update("hello").digest("base64");
  const request = framed(`x-amz-checksum-sha1:${sha1}\r\n`, "x-amz-checksum-sha1");
  assert.equal((await fetch(`${server.url}/bkt/trailed`, request)).headers.get("x-amz-checksum-sha1"), sha1);
});

test("a response that is rejected for its headers leaves no object open", async () => {
  const path = "/bkt/k?response-content-disposition=%E2%82%AC";
  for (let n = 0; n < 10; n += 1) assert.deepEqual(await answerTo(path, {}), { status: 400, code: "InvalidArgument" });
  await until("no object is open", () => !server.openFiles().some((name) => name.includes("/objects/")));
});

test("metadata that is not ASCII is returned as an encoded word of RFC 2047, as in S3's user guide", async () => {
  const value = Buffer.from("ÄMÄZÕÑ S3").toString("latin1");
  await fetch(`${server.url}/bkt/words`, { method: "PUT", headers: { "x-amz-meta-nonascii": value }, body: "x" });
  const reply = await fetch(`${server.url}/bkt/words`, { method: "HEAD" });
  assert.equal(reply.headers.get("x-amz-meta-nonascii"), "=?UTF-8?B?w4PChE3Dg8KEWsODwpXDg8KRIFMz?=");
});

const taggings = {
  "no set": "<Tagging/>",
  "a tag without a value": "<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>",
  "a tag that is text": "<Tagging><TagSet><Tag>a</Tag></TagSet></Tagging>",
  "two sets": "<Tagging><TagSet><Tag><Key>a</Key><Value/></Tag></TagSet><TagSet/></Tagging>",
};
for (const [name, body] of Object.entries(taggings)) {
  test(`tags of a document with ${name} are malformed`, async () => {
    const response = await answerTo("/bkt/k?tagging", { method: "PUT", body });
    assert.deepEqual(response, { status: 400, code: "MalformedXML" });
  });
}

test("an object that the disk has changed is an error or the end of the connection, and the next request is served", async () => {
  for (const byteLength of [1000, 3 * 2 ** 20]) {
    await fetch(`${server.url}/bkt/damaged`, { method: "PUT", body: Buffer.alloc(byteLength, 1) });
    const objects = join(server.folder, "data", "buckets", "bkt", "objects");
    const names = await readdir(objects, { recursive: true, withFileTypes: true });
    const files = names.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
    const sizes = await Promise.all(files.map(async (path) => (await stat(path)).size));
    // The largest object is the one that was put; its directory entry may precede its bytes.
    const path = files[sizes.indexOf(Math.max(...sizes))] ?? "";
    const bytes = await readFile(path);
    for (const [damage, range] of [
      [bytes.with(bytes.length - 1, 2), null],
      [bytes.subarray(0, -1), null],
      [bytes.subarray(0, -1), `bytes=1-${byteLength - 1}`],
    ] as const) {
      await writeFile(path, damage);
      const reply = await fetch(`${server.url}/bkt/damaged`, range === null ? {} : { headers: { range } });
      // The beginning of the large object has been sent when its end is found to be damaged.
      if (byteLength > 2 ** 20) await assert.rejects(reply.arrayBuffer());
      else {
        assert.equal(reply.status, 500);
        assert.match(await reply.text(), /<Code>InternalError<.*bytes are damaged/);
      }
      assert.equal(await (await fetch(`${server.url}/bkt/k`)).text(), "hello");
    }
    assert.equal((await fetch(`${server.url}/bkt/damaged`, { method: "DELETE" })).status, 204);
  }
});
