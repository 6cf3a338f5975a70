import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { request as ask, type ClientRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parseFlags, upFlags, upOptions } from "../../options/index.ts";
import { ByteBudget, silentLogger } from "@galatea/base";
import { dataDirectories } from "../../data-directory/index.ts";
import { platformServerLimits, type PlatformServerLimits } from "@galatea/aws/http-server";
import { openPlatform, type Platform } from "./platform.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

const stallTimeoutMs = 1500;
let root: string;
let platform: Platform;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-platform-"));
  platform = await open(0, { ...platformServerLimits, stallTimeoutMs });
  assert.equal((await finish(begin("PUT", "/bkt", {}))).status, 200);
});

after(async () => {
  await platform[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

function open(port: number, serverLimits: PlatformServerLimits): Promise<Platform> {
  return openPlatform({
    ...upOptions(parseFlags([`--port=${port}`], upFlags)),
    directories: dataDirectories(root, {}),
    keys: null,
    proxySecret: "proxy-secret",
    log: silentLogger,
    environment: {},
    serverLimits,
    requestMemory: new ByteBudget(2 ** 30),
  });
}

interface Sending {
  readonly request: ClientRequest;
  /** Rejects if the connection ends without a response. */
  readonly result: Promise<IncomingMessage>;
}

function begin(method: string, path: string, headers: Readonly<Record<string, string | number>>): Sending {
  const request = ask(`${platform.url}${path}`, { method, headers, agent: false });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once("response", resolve).once("error", reject);
  });
  return { request, result: answered };
}

async function finish({ request, result: answered }: Sending): Promise<{ status: number; body: string }> {
  request.end();
  const response = await answered;
  let body = "";
  for await (const chunk of response.setEncoding("latin1")) body += chunk;
  return { status: response.statusCode ?? 0, body };
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns the paths of the files in the object store. */
async function stored(): Promise<string[]> {
  const entries = await readdir(join(root, "objects"), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

test("a connection whose body stalls is closed after the time-out, and no bytes of its object remain", async () => {
  const sagemaker = { "content-type": "application/x-amz-json-1.1", "x-amz-target": "SageMaker.ListModels" };
  const untouched = await stored();
  const stalled = [
    ["PUT", "/bkt/stalled", {}],
    ["POST", "/", sagemaker],
  ] as const;
  await Promise.all(
    stalled.map(async ([method, path, headers]) => {
      const startedMs = performance.now();
      const sending = begin(method, path, { ...headers, "content-length": 1000 });
      sending.request.write("{".padEnd(500));
      await assert.rejects(sending.result, { code: "ECONNRESET" }, path);
      const tookMs = performance.now() - startedMs;
      assert.ok(tookMs >= stallTimeoutMs * 0.9, `${path} ended after ${tookMs} ms`);
    }),
  );
  assert.equal((await finish(begin("GET", "/bkt/stalled", {}))).status, 404);
  await eventually(async () => (await stored()).length <= untouched.length);
  assert.deepEqual(await stored(), untouched);
});

test("a slow upload that keeps sending bytes completes, however long it takes", async () => {
  const sending = begin("PUT", "/bkt/slow", { "content-length": 8 });
  for (let sent = 0; sent < 8; sent++) {
    sending.request.write("x");
    await wait(stallTimeoutMs / 6);
  }
  assert.equal((await finish(sending)).status, 200);
  assert.deepEqual(await finish(begin("GET", "/bkt/slow", {})), { status: 200, body: "x".repeat(8) });
});

test("requests that arrive while a platform recovers the previous run's state wait until it is ready", async () => {
  const port = Number(new URL(platform.url).port);
  await platform[Symbol.asyncDispose]();
  // Directories of instances that a killed platform left behind. The start removes them, which takes some time.
  for (let index = 0; index < 500; index++)
    await mkdir(join(root, "instances", `i-${index}`, "model", "1"), { recursive: true });
  let ready = false;
  const opening = open(port, platformServerLimits).then((opened) => {
    ready = true;
    return opened;
  });
  const connecting = async (): Promise<Sending> => {
    for (;;) {
      const sending = begin("PUT", "/bkt/early", { "content-length": 5 });
      const connected = new Promise((resolve) =>
        sending.request.once("socket", (socket) => socket.once("connect", () => resolve(false))),
      );
      sending.request.write("early");
      const refused = sending.result.then(
        () => false,
        (error: NodeJS.ErrnoException) => error.code === "ECONNREFUSED",
      );
      if (!(await Promise.race([connected, refused]))) return sending;
    }
  };
  try {
    const sending = await connecting();
    assert.equal(ready, false, "the platform was ready before the request could be sent");
    assert.equal((await finish(sending)).status, 200);
  } finally {
    platform = await opening;
  }
  assert.deepEqual(await finish(begin("GET", "/bkt/early", {})), { status: 200, body: "early" });
});
