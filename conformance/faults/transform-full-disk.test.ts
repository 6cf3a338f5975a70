/** A disk that becomes full during a transform job: the disk of its outputs, and the disk of the records. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ListObjectsV2Command, PutObjectCommand } from "@aws-sdk/client-s3";
import {
  CreateModelCommand,
  CreateTransformJobCommand,
  DescribeTransformJobCommand,
  ListTransformJobsCommand,
} from "@aws-sdk/client-sagemaker";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { mayMount } from "./mount.ts";
import { bucket, image, Platform, errorOfInvocation } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

const mebibyte = 2 ** 20;
const role = "arn:aws:iam::000000000000:role/faults";
const program = readFileSync(new URL("models/faulty.py", import.meta.url));

/** Small, so that a few models fill the records. */
const large = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`LARGE_${index}`, "x".repeat(1000)]));

if (mayMount()) {
  describe("a small disk under a transform job", () => {
    let platform: Platform;
    const disks: string[] = [];
    const disk = (name: string) => join(platform.workspace.data, name);
    before(async () => {
      platform = await Platform.open(async ({ data }) => {
        for (const directory of ["objects", "records"]) {
          const path = join(data, directory);
          await mkdir(path);
          execFileSync("mount", ["-t", "tmpfs", "-o", `size=${32 * mebibyte}`, "tmpfs", path], { stdio: "pipe" });
          disks.push(path);
        }
      });
      const archive = tarball([
        { path: "model/config.pbtxt", body: faultyConfig },
        { path: "model/1/model.py", body: program },
      ]);
      await put("model.tar.gz", archive);
      for (const key of ["a", "b", "c"]) await put(`in/${key}.json`, faultyRequest("echo", { value: [3] }));
      await platform.sagemaker.send(named("faulty"));
    });
    after(async () => {
      await platform.stop();
      for (const path of disks) execFileSync("umount", [path]);
      await platform[Symbol.asyncDispose]();
    });

    const put = (key: string, body: string | Uint8Array) =>
      platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
    const named = (ModelName: string) =>
      new CreateModelCommand({
        ModelName,
        ExecutionRoleArn: role,
        PrimaryContainer: {
          Image: image,
          ModelDataUrl: `s3://${bucket}/model.tar.gz`,
          Environment: { FAULTS_MEETING: platform.workspace.meeting, ...large },
        },
      });
    const create = (name: string, prefix: string) =>
      platform.sagemaker.send(
        new CreateTransformJobCommand({
          TransformJobName: name,
          ModelName: "faulty",
          TransformInput: {
            DataSource: { S3DataSource: { S3DataType: "S3Prefix", S3Uri: `s3://${bucket}/${prefix}` } },
            ContentType: "application/json",
          },
          TransformOutput: { S3OutputPath: `s3://${bucket}/out/${name}` },
          TransformResources: { InstanceType: "ml.m5.large", InstanceCount: 1 },
        }),
      );
    const ended = async (name: string) => {
      const job = await until(`the job ${name} has ended`, async () => {
        const reply = await platform.sagemaker.send(new DescribeTransformJobCommand({ TransformJobName: name }));
        return reply.TransformJobStatus === "InProgress" ? null : reply;
      });
      return { status: job.TransformJobStatus, reason: job.FailureReason ?? "" };
    };
    const outputs = async (name: string) => {
      const listed = await platform.s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: `out/${name}/` }));
      return (listed.Contents ?? []).map(({ Key = "" }) => Key);
    };

    /** Fills a disk completely while `work` runs. */
    async function filled(path: string, work: () => Promise<void>): Promise<void> {
      const { bavail, bsize } = await statfs(path);
      const filler = join(path, "filler");
      await writeFile(filler, Buffer.alloc(bavail * bsize));
      try {
        await work();
      } finally {
        await rm(filler, { force: true });
      }
    }

    test("outputs that do not fit on the disk fail the job and leave no files, and a later job completes", async () => {
      await filled(disk("objects"), async () => {
        await create("no-room", "in/");
        const { status, reason } = await ended("no-room");
        assert.equal(status, "Failed");
        assert.match(
          reason,
          /^InternalServerError: s3:\/\/faults\/in\/a\.json: There is no space left where the objects are kept \(3 of 3 objects failed\)$/,
        );
        assert.deepEqual(await outputs("no-room"), []);
      });
      await create("room", "in/");
      assert.deepEqual(await ended("room"), { status: "Completed", reason: "" });
      assert.equal((await outputs("room")).length, 3);
    });

    test("a job whose progress cannot be recorded on a full disk fails, is in progress until the failure is recorded, and keeps its outputs", async () => {
      await put("held/a.json", faultyRequest("hold go"));
      await put("held/b.json", faultyRequest("echo"));
      await create("unrecorded", "held/");
      await until("the first object is at the container", () =>
        existsSync(join(platform.workspace.meeting, "go.running")),
      );
      await filled(disk("records"), async () => {
        // SQLite overwrites pages of its log before it needs more of the disk.
        let error: { status: number } | null = null;
        for (let i = 0; error === null && i < 1000; i++) {
          error = await platform.sagemaker.send(named(`filler-${i}`)).then(
            () => null,
            (thrown: Error) => errorOfInvocation(Promise.reject(thrown)),
          );
        }
        assert.equal(error?.status, 500);
        await writeFile(join(platform.workspace.meeting, "go.go"), "");
        await until("the job's end cannot be recorded", () =>
          platform.log().includes("a transition of the transform job cannot be recorded"),
        );
        // Describe would block until the job ends.
        const { TransformJobSummaries: [job] = [] } = await platform.sagemaker.send(
          new ListTransformJobsCommand({ NameContains: "unrecorded" }),
        );
        assert.equal(job?.TransformJobStatus, "InProgress");
      });
      const { status, reason } = await ended("unrecorded");
      assert.equal(status, "Failed");
      assert.match(reason, /^InternalServerError: The progress cannot be recorded: .*full/);
      // The second object may already be in the container when the failure is detected.
      assert.equal((await outputs("unrecorded"))[0], "out/unrecorded/a.json.out");
    });
  });
}
