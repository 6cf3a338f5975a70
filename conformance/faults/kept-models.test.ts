/** Unpacked models after restarts of the platform: intact directories are reused, and incomplete ones are not. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir, open, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { DeleteEndpointCommand, ListEndpointsCommand } from "@aws-sdk/client-sagemaker";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform, prefix } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url));
const name = "kept";
const targets = ["one.tar.gz", "two.tar.gz"];
/** Large enough to be stored once for both models. */
const weights = Buffer.alloc(200_000, "w");

let platform: Platform;
before(async () => {
  platform = await Platform.open();
  for (const target of targets) {
    const body = tarball([
      { path: "model/config.pbtxt", body: faultyConfig },
      { path: "model/1/model.py", body: program },
      { path: "model/1/weights.bin", body: weights },
    ]);
    await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: prefix + target, Body: body }));
  }
  await createEndpoint(platform, { name });
  await endpointIs(platform, name, "InService");
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

const instances = () => join(platform.workspace.data, "instances");
const call = (target: string) => invoke(platform, name, target, faultyRequest("echo"));

async function pathsBelow(ending: string): Promise<string[]> {
  const names = await readdir(instances(), { recursive: true });
  return names.filter((path) => path.endsWith(ending)).map((path) => join(instances(), path));
}

/** Returns the inodes of all files of this name in unpacked models; each unpacking creates other inodes. */
async function inodes(file: string): Promise<number[]> {
  const found = await Promise.all((await pathsBelow(file)).map(async (path) => (await stat(path)).ino));
  return found.toSorted((a, b) => a - b);
}

async function answersAll(): Promise<void> {
  for (const target of targets) assert.match(await call(target), /"outputs"/);
}

const only = async (ending: string) => {
  const [path = "", ...others] = await pathsBelow(ending);
  assert.ok(path !== "" && others.length === 0, `${path} ${others.join(" ")}`);
  return path;
};

test("after kill -9 and after SIGTERM a model is not unpacked again, and equal files are still one", async () => {
  await answersAll();
  const programs = await inodes("model.py");
  const shared = await inodes("weights.bin");
  assert.equal(programs.length, 2);
  assert.equal(new Set(shared).size, 1);
  for (const end of [() => platform.kill(), () => platform.stop()]) {
    await end();
    await platform.startAgain();
    await endpointIs(platform, name, "InService");
    await answersAll();
    assert.deepEqual(await inodes("model.py"), programs);
    assert.deepEqual(await inodes("weights.bin"), shared);
  }
});

test("a model whose file was altered between the runs is unpacked again", async () => {
  await answersAll();
  const [first = ""] = await pathsBelow("model.py");
  // The file stays open, so that its inode number is not reused for the file that replaces it.
  await using altered = await open(first);
  const { ino } = await altered.stat();
  await platform.kill();
  await writeFile(first, Buffer.alloc(program.byteLength, "#"));
  await platform.startAgain();
  await endpointIs(platform, name, "InService");
  await answersAll();
  const now = await inodes("model.py");
  assert.ok(now.length === 2 && !now.includes(ino), `${ino} is not among ${now.join(" ")}`);
  for (const path of await pathsBelow("model.py")) assert.deepEqual(readFileSync(path), program);
  await until("the container is notified", () =>
    platform.log().includes("files have changed since they were unpacked"),
  );
});

test("incomplete data after kill -9 is removed: trees without a description, unknown instances, files without a tree", async () => {
  await answersAll();
  const programs = await inodes("model.py");
  await platform.kill();
  const trees = await only("/trees");
  const half = join(trees, "../ml/models/0123/model");
  await mkdir(half, { recursive: true });
  await writeFile(join(half, "config.pbtxt"), "name:");
  await writeFile(join(trees, "0123.tmp"), "{");
  await mkdir(join(instances(), "i-0123/ml/models"), { recursive: true });
  await mkdir(join(instances(), "content/70000"), { recursive: true });
  await writeFile(join(instances(), "content/70000/abc"), "");
  await platform.startAgain();
  await endpointIs(platform, name, "InService");
  await answersAll();
  assert.deepEqual(await inodes("model.py"), programs);
  for (const left of ["0123", "0123.tmp", "i-0123", "abc"]) assert.deepEqual(await pathsBelow(`/${left}`), []);
});

test("no data of a deleted endpoint is kept", async () => {
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: name }));
  await until("the endpoint is deleted", async () => {
    const { Endpoints } = await platform.sagemaker.send(new ListEndpointsCommand({}));
    return Endpoints?.length === 0;
  });
  await platform.stop();
  await platform.startAgain();
  assert.deepEqual(await pathsBelow("model.py"), []);
  assert.deepEqual(await pathsBelow("/trees"), []);
});
