/** A disk that becomes full while a model is cached on it or an object is stored, and later has free space again. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmdirSync } from "node:fs";
import { mkdir, readdir, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { CreateEndpointConfigCommand, CreateModelCommand, UpdateEndpointCommand } from "@aws-sdk/client-sagemaker";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { mayMount } from "./mount.ts";
import { bucket, createEndpoint, endpointIs, image, invoke, Platform, prefix, errorOfInvocation } from "./platform.ts";
import { openFiles } from "./processes.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url));
const archive = (weights: Uint8Array) =>
  tarball([
    { path: "model/config.pbtxt", body: faultyConfig },
    { path: "model/1/model.py", body: program },
    { path: "model/1/weights.bin", body: weights },
  ]);
const mebibyte = 2 ** 20;
const name = "full";

const put = (platform: Platform, key: string, body: Uint8Array) =>
  platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
const assertResponses = async (platform: Platform, target: string) =>
  assert.match(await invoke(platform, name, target, faultyRequest("echo", { value: [3] })), /"data":\[3\.0\]/);

async function assertNoSpaceFor(platform: Platform, target: string): Promise<void> {
  const error = await errorOfInvocation(invoke(platform, name, target, faultyRequest("echo")));
  assert.equal(error.name, "ModelError");
  assert.equal(
    error.message.slice(0, error.message.indexOf(" See ")),
    `Received server error (507) from primary with message "Failed to unpack the archive of model ${target}: No space left on device".`,
  );
}

async function modelCount(platform: Platform): Promise<number> {
  const instances = join(platform.workspace.data, "instances");
  const entries = await readdir(instances, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isDirectory() && entry.parentPath.endsWith("/ml/models")).length;
}

if (mayMount()) {
  describe("a small disk", () => {
    let platform: Platform;
    const disks: string[] = [];
    before(async () => {
      platform = await Platform.open(async ({ data }) => {
        for (const directory of ["instances", "objects", "records"]) {
          const path = join(data, directory);
          await mkdir(path);
          execFileSync("mount", ["-t", "tmpfs", "-o", `size=${32 * mebibyte}`, "tmpfs", path], { stdio: "pipe" });
          disks.push(path);
        }
      });
      await put(platform, `${prefix}small.tar.gz`, archive(randomBytes(1000)));
      await put(platform, `${prefix}large.tar.gz`, archive(randomBytes(8 * mebibyte)));
      await createEndpoint(platform, { name });
      await endpointIs(platform, name, "InService");
    });
    after(async () => {
      const unmount = () => {
        for (const path of disks) execFileSync("umount", [path]);
      };
      await platform.stop();
      unmount();
      await platform[Symbol.asyncDispose]();
    });

    /** Fills a disk up to the last `freeBytes` while `work` runs. */
    async function filled(disk: string, freeBytes: number, work: () => Promise<void>): Promise<void> {
      const { bavail, bsize } = await statfs(disk);
      const filler = join(disk, "filler");
      await writeFile(filler, Buffer.alloc(bavail * bsize - freeBytes));
      await work();
      await rm(filler);
    }

    test("a model that no longer fits is rejected with 507 and leaves no file, loaded models respond, and it loads when space is free", async () => {
      await assertResponses(platform, "small.tar.gz");
      await filled(join(platform.workspace.data, "instances"), 2 * mebibyte, async () => {
        await assertNoSpaceFor(platform, "large.tar.gz");
        assert.equal(await modelCount(platform), 1);
        await assertResponses(platform, "small.tar.gz");
      });
      await assertResponses(platform, "large.tar.gz");
    });

    test("an object that no longer fits is rejected and leaves no partial file, and others can be read and written", async () => {
      const objects = join(platform.workspace.data, "objects");
      const { bavail } = await statfs(objects);
      await filled(objects, 2 * mebibyte, async () => {
        const error = await errorOfInvocation(put(platform, "too-large.bin", randomBytes(24 * mebibyte)));
        assert.ok(error.status >= 500, `${error.status} ${error.name}: ${error.message}`);
        const missing = await errorOfInvocation(
          platform.s3.send(new HeadObjectCommand({ Bucket: bucket, Key: "too-large.bin" })),
        );
        assert.equal(missing.status, 404);
        await put(platform, "small.bin", randomBytes(1000));
        await assertResponses(platform, "small.tar.gz");
      });
      await until("nothing of it is on the disk", async () => {
        const left = await statfs(objects);
        return (bavail - left.bavail) * left.bsize < 64 * 1024;
      });
      await put(platform, "too-large.bin", randomBytes(4 * mebibyte));
    });

    test("a model for whose record there is no space is rejected with the cause, and created when space is free", async () => {
      const disk = join(platform.workspace.data, "records");
      const named = (name: string) =>
        new CreateModelCommand({
          ModelName: name,
          ExecutionRoleArn: "arn:aws:iam::000000000000:role/x",
          PrimaryContainer: { Image: image, Environment: { LARGE: "x".repeat(1000) } },
        });
      await filled(disk, 0, async () => {
        let error: { name: string; status: number; message: string } | null = null;
        // SQLite overwrites pages of its log before it needs more of the disk.
        for (let i = 0; error === null && i < 1000; i++) {
          error = await platform.sagemaker.send(named(`full-${i}`)).then(
            () => null,
            (thrown: Error) => errorOfInvocation(Promise.reject(thrown)),
          );
        }
        assert.deepEqual([error?.status, error?.message], [500, "The disk that holds the platform's data is full"]);
        await assertResponses(platform, "small.tar.gz");
      });
      await platform.sagemaker.send(named("there-is-room"));
    });

    test("captured requests do not fail while the disk is full, and captured data is written when space is free", async () => {
      const { sagemaker, s3 } = platform;
      await sagemaker.send(
        new CreateEndpointConfigCommand({
          EndpointConfigName: "captured",
          ProductionVariants: [{ VariantName: "all", ModelName: name, InitialInstanceCount: 1 }],
          DataCaptureConfig: {
            InitialSamplingPercentage: 100,
            DestinationS3Uri: `s3://${bucket}/captured`,
            CaptureOptions: [{ CaptureMode: "InputAndOutput" }],
          },
        }),
      );
      const update = async (EndpointConfigName: string) => {
        await sagemaker.send(new UpdateEndpointCommand({ EndpointName: name, EndpointConfigName }));
        await endpointIs(platform, name, "InService");
      };
      await update("captured");
      const written = async () => {
        const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: "captured/" }));
        return Contents.length;
      };
      await filled(join(platform.workspace.data, "objects"), 0, async () => {
        for (let requestCount = 0; requestCount < 5; requestCount += 1) await assertResponses(platform, "small.tar.gz");
        // Records captured before are written at the update, if the disk has space.
        await update(name);
        await until("the caller gets an error", () => platform.log().includes("captured data cannot be written"));
        await assertResponses(platform, "small.tar.gz");
        assert.equal(await written(), 0);
      });
      await until("it is written", async () => (await written()) === 1);
    });

    test("a client that sends a body larger than the disk to its end gets the error, and the platform continues", async () => {
      const { UploadId } = await platform.s3.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: "parts" }));
      const body = randomBytes(60 * mebibyte);
      const part = { Bucket: bucket, Key: "parts", UploadId, PartNumber: 1, Body: body };
      const sockets = () => openFiles(platform.pid).filter((path) => path.startsWith("socket:")).length;
      const before = sockets();
      const bothSent = [put(platform, "outgrown.bin", body), platform.s3.send(new UploadPartCommand(part))];
      for (const error of await Promise.all(bothSent.map(errorOfInvocation))) assert.equal(error.status, 507);
      await until(
        "the connections that stayed open for clients that may still be sending are closed",
        () => sockets() <= before,
      );
      const listed = await platform.s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: "outgrown" }));
      assert.equal(listed.KeyCount, 0);
    });
  });
}

if (mayMount()) {
  test("commands that need the disk report a read-only or full disk in one sentence", async () => {
    const directory = mkdtempSync(join(tmpdir(), "galatea-refused-"));
    const galatea = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
    const run = (...argv: string[]) => spawnSync(process.execPath, [galatea, ...argv], { encoding: "utf8" });
    for (const [options, word] of [
      ["ro,size=64k", "read-only"],
      ["size=64k,nr_inodes=1", "full"],
    ] as const) {
      execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", directory], { stdio: "pipe" });
      try {
        const data = join(directory, "data");
        const up = run("up", "--port=0", `--data=${data}`);
        const message = `the disk that holds '${data}' is ${word}`;
        assert.deepEqual(
          [up.status, up.stdout, up.stderr],
          [1, "", `galatea up: ${message}; choose another directory with --data\n`],
        );
        const file = join(directory, "log");
        const serve = run("serve", `--model-repository=${tmpdir()}`, `--log-file=${file}`);
        assert.deepEqual(
          [serve.status, serve.stdout, serve.stderr],
          [1, "", `--log-file cannot be written: the disk that holds '${file}' is ${word}\n`],
        );
      } finally {
        execFileSync("umount", [directory]);
      }
    }
    rmdirSync(directory);
  });
}

describe("a limit of an endpoint's disk", () => {
  let platform: Platform;
  before(async () => {
    platform = await Platform.open();
    for (const i of [1, 2, 3]) await put(platform, `${prefix}${i}.tar.gz`, archive(randomBytes(3 * mebibyte)));
    await put(platform, `${prefix}huge.tar.gz`, archive(randomBytes(12 * mebibyte)));
    await createEndpoint(platform, { name, environment: { GALATEA_MODEL_DISK_BYTES: String(8 * mebibyte) } });
    await endpointIs(platform, name, "InService");
  });
  after(async () => {
    await platform[Symbol.asyncDispose]();
  });

  test("a model that can never fit is rejected with 507, and models that fit alternately evict each other", async () => {
    await assertResponses(platform, "1.tar.gz");
    await assertNoSpaceFor(platform, "huge.tar.gz");
    for (const target of ["1.tar.gz", "2.tar.gz", "3.tar.gz", "1.tar.gz"]) await assertResponses(platform, target);
    assert.ok((await modelCount(platform)) <= 2);
  });
});
