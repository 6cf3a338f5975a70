/** Invalid archives of a multi-model endpoint: the request for such a model gets an error, and other requests succeed. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform, prefix, errorOfInvocation } from "./platform.ts";
import { header, tar, tarball, type TarEntry } from "./tarball.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url));
const modelEntries = (more: readonly TarEntry[] = []): TarEntry[] => [
  { path: "model/config.pbtxt", body: faultyConfig },
  { path: "model/1/model.py", body: program },
  ...more,
];
const good = tarball(modelEntries());
const name = "archives";

let platform: Platform;
before(async () => {
  platform = await Platform.open();
  await put("good.tar.gz", good);
  await createEndpoint(platform, { name });
  await endpointIs(platform, name, "InService");
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

async function put(target: string, body: Uint8Array): Promise<void> {
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: prefix + target, Body: body }));
}

async function assertGoodResponses(): Promise<void> {
  assert.match(await invoke(platform, name, "good.tar.gz", faultyRequest("echo", { value: [4] })), /"data":\[4\.0\]/);
}

/** Directories below the instance's models: unpacked and cached models. */
async function unpacked(): Promise<string[]> {
  const instances = join(platform.workspace.data, "instances");
  const entries = await readdir(instances, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isDirectory() && entry.parentPath.endsWith("/ml/models"))
    .map((entry) => entry.name);
}

async function namesBelow(directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).map((path) => basename(path));
}

const expanding = () => {
  // Four gibibytes of zeros in four megabytes of gzip.
  const block = gzipSync(Buffer.alloc(64 * 2 ** 20));
  const head = gzipSync(header({ path: "model/1/zeros" }, 8 * 2 ** 30 - 512));
  return Buffer.concat([
    gzipSync(tar(modelEntries()).subarray(0, -1024)),
    head,
    ...Array.from({ length: 60 }, () => block),
  ]);
};

const broken: readonly [sentence: string, body: () => Buffer, why: string][] = [
  ["is cut off", () => good.subarray(0, good.length - 200), "the archive ends before its last entry is complete"],
  [
    "is cut off inside gzip's first bytes",
    () => good.subarray(0, 5),
    "the archive ends before its last entry is complete",
  ],
  ["is empty", () => Buffer.alloc(0), "the archive is empty: it holds no tar header"],
  [
    "is not gzip",
    () => Buffer.from("PK\u0003\u0004 this is a zip, one might think".repeat(100)),
    "the archive is damaged: a tar header has a wrong checksum",
  ],
  [
    "is gzip but not tar",
    () => gzipSync("hello ".repeat(500)),
    "the archive is damaged: a tar header has a wrong checksum",
  ],
  [
    "has a flipped bit",
    () => {
      // Stored, not deflated: only the checksum at the end detects the change, after gzip's header and the first tar
      // header.
      const stored = gzipSync(tar(modelEntries()), { level: 0 });
      stored[600]! ^= 4;
      return stored;
    },
    "the archive is not in gzip format or is damaged: incorrect data check",
  ],
  [
    "climbs out by ..",
    () => tarball(modelEntries([{ path: "../../../../escaped", body: "x" }])),
    'the archive holds a path with "..": "../../../../escaped"',
  ],
  [
    "names an absolute path",
    () => tarball(modelEntries([{ path: "/tmp/escaped", body: "x" }])),
    'the archive holds an absolute path: "/tmp/escaped"',
  ],
  [
    "has a link out of the archive",
    () => tarball(modelEntries([{ path: "model/1/link", type: "2", target: "/etc/passwd" }])),
    'the link "model/1/link" leaves the archive',
  ],
  [
    "writes through a link",
    () =>
      tarball(
        modelEntries([
          { path: "d", type: "2", target: ".." },
          { path: "d/escaped", body: "x" },
        ]),
      ),
    'the link "d" leaves the archive',
  ],
  [
    "has a hard link to a file outside of the archive",
    () => tarball(modelEntries([{ path: "model/1/link", type: "1", target: "/etc/passwd" }])),
    'the archive holds an absolute path: "/etc/passwd"',
  ],
  [
    "holds a pipe",
    () => tarball(modelEntries([{ path: "model/1/pipe", type: "6" }])),
    'the archive holds an entry of type FIFO: "model/1/pipe"',
  ],
  [
    "names a file twice",
    () => tarball(modelEntries([{ path: "model/config.pbtxt", body: "x" }])),
    'the archive holds "model/config.pbtxt" twice',
  ],
  ["expands without end", expanding, "the archive expands more than 200 times"],
  [
    "nests deeper than any model",
    // 180 characters do not fit in the name field, so GNU's long name precedes the entry.
    () => tarball(modelEntries([{ path: "long", type: "L", body: `${"d/".repeat(90)}x\0` }, { path: "x" }])),
    "a path of the archive is deeper than 64 directories",
  ],
];
broken.forEach(([sentence, body, why], i) => {
  test(`refused: an archive that ${sentence}`, async () => {
    const target = `broken-${i}.tar.gz`;
    await put(target, body());
    const error = await errorOfInvocation(invoke(platform, name, target, faultyRequest("echo")));
    assert.equal(error.name, "ModelError");
    assert.equal(error.status, 424);
    const text = `Received client error (400) from primary with message "Failed to unpack the archive of model ${target}: ${why}". `;
    assert.equal(error.message.slice(0, text.length), text);
    await assertGoodResponses();
    assert.equal((await unpacked()).length, 1, "only the good model's files are there");
    assert.ok(!(await namesBelow(platform.workspace.directory)).includes("escaped"));
  });
});

test("an archive without a model, or with a model that raises, gets the container's error", async () => {
  await put("no-model.tar.gz", tarball([{ path: "readme.txt", body: "hello" }]));
  const empty = await errorOfInvocation(invoke(platform, name, "no-model.tar.gz", faultyRequest("echo")));
  assert.match(
    empty.message,
    /^Received client error \(400\) from primary with message ".*the archive contains no model directory/,
  );
  const raising = [
    { path: "m/config.pbtxt", body: faultyConfig },
    { path: "m/1/model.py", body: "raise ValueError('not today')\n" },
  ];
  await put("raises.tar.gz", tarball(raising));
  const raised = await errorOfInvocation(invoke(platform, name, "raises.tar.gz", faultyRequest("echo")));
  assert.match(raised.message, /^Received client error \(400\) from primary with message ".*ValueError: not today/);
  await assertGoodResponses();
});

test("an archive that was repaired under the same name is loaded at the next request", async () => {
  await put("mended.tar.gz", good.subarray(0, 100));
  await errorOfInvocation(invoke(platform, name, "mended.tar.gz", faultyRequest("echo")));
  await put("mended.tar.gz", good);
  assert.match(await invoke(platform, name, "mended.tar.gz", faultyRequest("echo", { value: [6] })), /"data":\[6\.0\]/);
});

test("a target without an object is rejected with the location that was searched", async () => {
  const error = await errorOfInvocation(invoke(platform, name, "nobody.tar.gz", faultyRequest("echo")));
  assert.equal(error.name, "ValidationError");
  assert.equal(error.status, 400);
  assert.equal(
    error.message,
    `Failed to download model data(bucket: ${bucket}, key: ${prefix}nobody.tar.gz). Please ensure that there is an object ` +
      "located at the URL and that the role passed to CreateModel has permissions to download the model.",
  );
});

test("target models outside of the prefix reach no other object", async () => {
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "outside.tar.gz", Body: good }));
  for (const target of ["../outside.tar.gz", "./good.tar.gz", "%2e%2e/outside.tar.gz", "/outside.tar.gz"]) {
    const error = await errorOfInvocation(invoke(platform, name, target, faultyRequest("echo")));
    assert.equal(error.name, "ValidationError", `${target}: ${error.message}`);
  }
  await assertGoodResponses();
});

test("a single model whose archive is broken fails its endpoint with the reason, and leaves no process", async () => {
  await put("broken-single.tar.gz", good.subarray(0, 500));
  const single = "single-broken";
  await createEndpoint(platform, { name: single, modelDataUrl: `s3://${bucket}/${prefix}broken-single.tar.gz` });
  const reason = await endpointIs(platform, single, "Failed");
  assert.match(reason, /the archive ends before its last entry is complete/);
  assert.equal(platform.servers().length, 1);
  await assertGoodResponses();
});

test("a single model that raises fails its endpoint with the container's last log lines, and leaves no process", async () => {
  const raising = [
    { path: "m/config.pbtxt", body: faultyConfig },
    { path: "m/1/model.py", body: "raise ValueError('not today')\n" },
  ];
  await put("raises-single.tar.gz", tarball(raising));
  const single = "single-raises";
  await createEndpoint(platform, { name: single, modelDataUrl: `s3://${bucket}/${prefix}raises-single.tar.gz` });
  assert.match(await endpointIs(platform, single, "Failed"), /ValueError: not today/);
  assert.equal(platform.servers().length, 1);
  await assertGoodResponses();
});
