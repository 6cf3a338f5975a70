/** A data directory on a damaged disk: the platform starts, serves the intact data, and logs what was lost. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import * as fc from "fast-check";
import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { CreateModelCommand, paginateListModels } from "@aws-sdk/client-sagemaker";
import { bucket, Platform } from "./platform.ts";
import { until } from "./until.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
const modelCount = 31;
const nameOf = (index: number) => `model-${String(index).padStart(2, "0")}`;
const modelNames = Array.from({ length: modelCount }, (_, index) => nameOf(index));
const keys = ["a", "b/ü", "c"];

let platform: Platform;
/** The directory after kill -9, with all models in the write-ahead log, and after a stop. */
const states = new Map<string, string>();

before(async () => {
  platform = await Platform.open();
  for (const name of modelNames) await createModel(name);
  for (const key of keys) await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: key }));
  await platform.s3.send(new CreateBucketCommand({ Bucket: "other" }));
  const upload = await platform.s3.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: "m" }));
  const part = { Bucket: bucket, Key: "m", UploadId: upload.UploadId };
  for (const number of [1, 2]) {
    await platform.s3.send(new UploadPartCommand({ ...part, PartNumber: number, Body: randomBytes(100) }));
  }
  const madeNames = async () => await readdir(join(platform.workspace.data, "snapshots"));
  await until("the platform writes its first snapshot", async () => (await madeNames()).some(isSnapshot));
  // Names contain seconds, and a backup does not overwrite a file.
  await until("the second of that snapshot is over", async () => !(await madeNames()).includes(snapshotName()));
  takeSnapshot(platform.workspace.data);
  await platform.kill();
  await keep("killed");
  await platform.startAgain();
  await platform.stop();
  await keep("stopped");
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

/** Writes a snapshot of the running platform's records, as the platform does each hour. */
function takeSnapshot(data: string): void {
  execFileSync(process.execPath, [main, "backup", join(data, "snapshots", snapshotName()), "--data", data]);
}

const isSnapshot = (name: string) => /^galatea-\d{8}T\d{6}Z\.db$/.test(name);
const snapshotName = () => `galatea-${new Date().toISOString().replace(/\.\d+|[-:]/g, "")}.db`;

async function createModel(name: string): Promise<void> {
  await platform.sagemaker.send(
    new CreateModelCommand({
      ModelName: name,
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
      PrimaryContainer: {
        Image: "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3",
        ModelDataUrl: `s3://${bucket}/${name}.tar.gz`,
        Mode: "SingleModel",
      },
    }),
  );
}

async function keep(state: string): Promise<void> {
  const copy = join(platform.workspace.directory, `as-${state}`);
  await cp(platform.workspace.data, copy, { recursive: true });
  states.set(state, copy);
}

async function filesOf(state: string): Promise<string[]> {
  const root = states.get(state) ?? "";
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .filter((path) => !path.startsWith("python/"))
    .sort();
}

interface Found {
  readonly models: readonly string[];
  readonly keys: readonly string[];
  readonly partCount: number;
  readonly log: string;
}

/** Restores the data of `state`, damages it, and returns the content of a platform that starts over it. */
async function startedOver(state: string, damage: (root: string) => Promise<void>): Promise<Found> {
  const { data } = platform.workspace;
  await rm(data, { recursive: true, force: true });
  await cp(states.get(state) ?? "", data, { recursive: true });
  await damage(data);
  await platform.startAgain();
  const models: string[] = [];
  for await (const page of paginateListModels({ client: platform.sagemaker, pageSize: 100 }, {})) {
    models.push(...(page.Models ?? []).map((model) => model.ModelName ?? ""));
  }
  const { Contents: objects = [] } = await platform.s3.send(new ListObjectsV2Command({ Bucket: bucket }));
  const { Uploads: uploads = [] } = await platform.s3.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
  let partCount = 0;
  for (const { Key, UploadId } of uploads) {
    const listed = await platform.s3.send(new ListPartsCommand({ Bucket: bucket, Key, UploadId }));
    partCount += listed.Parts?.length ?? 0;
  }
  // The database accepts writes as before.
  await createModel("after");
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "after", Body: "after" }));
  await platform.stop();
  return { models: models.sort(), keys: objects.map(({ Key }) => Key ?? ""), partCount, log: platform.log() };
}

async function flip(path: string, chosen: number): Promise<void> {
  const bytes = await readFile(path);
  if (bytes.length === 0) return;
  const bit = chosen % (bytes.length * 8);
  bytes[bit >>> 3]! ^= 1 << (bit & 7);
  await writeFile(path, bytes);
}

const complete = { models: modelNames, keys, partCount: 2 };
const has = ({ models, keys: found, partCount }: Found) => ({ models, keys: found, partCount });

test("one flipped bit in the write-ahead log loses nothing that the snapshot has, and is logged", async () => {
  const found = await startedOver("killed", async (root) => {
    const path = join(root, "records", "galatea.db-wal");
    await flip(path, Math.floor((await readFile(path)).length * 0.5) * 8);
  });
  assert.deepEqual(has(found), complete);
  assert.match(found.log, /a database is damaged: it continues from its newest snapshot.*lostCommits=0/);
});

test("one flipped bit in any file of the data directory loses nothing that the snapshot has, or one record", async () => {
  const runs: [string, string][] = [];
  for (const state of states.keys()) for (const file of await filesOf(state)) runs.push([state, file]);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...runs), fc.nat(), async ([state, file], chosen) => {
      const found = await startedOver(state, (root) => flip(join(root, file), chosen));
      const what = `${state} ${file} bit ${chosen}\n${found.log}`;
      const lost = modelNames.filter((name) => !found.models.includes(name));
      // SQLite has no checksums of pages: a change within a text damages only that record.
      assert.ok(lost.length <= (file.startsWith("records/galatea.db") ? 1 : 0), what);
      assert.deepEqual({ ...has(found), models: [...found.models, ...lost].sort() }, complete, what);
    }),
    { numRuns: 12, seed: 20_261_122, endOnFailure: true },
  );
});

test("empty, garbage and unknown files in every directory do not prevent a start", async () => {
  const found = await startedOver("stopped", async (root) => {
    const paths = await filesOf("stopped");
    const segment = paths.find((path) => /uploads\/.*\/1\.json$/.test(path)) ?? "";
    await writeFile(join(root, segment), "");
    await writeFile(
      join(root, "clients", "certificate.json"),
      '{"certificatePem":"garbage","keyPem":"","names":[],"untilMs":9e15}',
    );
    await writeFile(join(root, "records", "lock"), randomBytes(5000));
    await writeFile(join(root, "records", "galatea.db"), randomBytes(5000));
    await writeFile(join(root, "records", "metrics.db"), randomBytes(5000));
    await writeFile(join(root, "records", "sockets-directory"), "garbage");
    await writeFile(join(root, "objects", "buckets", "other", "bucket.json"), "");
    const directories = new Set(paths.map((path) => join(root, path, "..")));
    for (const name of ["objects", "logs", "instances", "objects/buckets", `objects/buckets/${bucket}/objects`]) {
      directories.add(join(root, name));
    }
    for (const directory of directories) {
      await writeFile(join(directory, "stray"), "stray");
      await mkdir(join(directory, "i-stray", "deep"), { recursive: true });
    }
  });
  assert.deepEqual(has(found), { ...complete, partCount: 1 });
  for (const named of [
    /a part of an unfinished upload is damaged and is set aside/,
    /the platform's certificate is damaged; it is kept aside and replaced by a new one/,
    /a database is damaged: it continues from its newest snapshot.*galatea\.db/,
    /a database is damaged.*metrics\.db/,
    /a bucket's description is damaged and is set aside/,
    /an unknown file is among the objects/,
  ]) {
    assert.match(found.log, named);
  }
});
