import { createHash, randomBytes } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { CreateBucketCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { timedMs } from "../send-request.ts";
import { clientSettings, startPlatform } from "../platform.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";

const mebi = 2 ** 20;
const bucket = "uploads";
const smallCount = 50;
const warmingMebibytes = 128;

/**
 * Writes the chunk a number of times, computes its MD5, and syncs: the minimum work of an object store. Each time it
 * writes a new file, as for a new object. An overwritten file would reuse its memory in the page cache; on a virtual
 * machine, new memory took two to three times as long.
 */
async function writeBare(path: string, chunk: Buffer, count: number): Promise<void> {
  const hash = createHash("md5");
  await using file = await open(path, "wx");
  for (let index = 0; index < count; index++) {
    hash.update(chunk);
    await file.write(chunk);
  }
  await file.sync();
  hash.digest();
}

/** Uploads as boto3 does: parts of 8 MiB, ten at a time. For comparison, one plain loop writes, hashes and syncs the same bytes. */
export const uploadRow = {
  name: "upload",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using bare = await temporaryDirectory();
    await using platform = await startPlatform(data.path);
    const client = new S3Client({ ...clientSettings(platform.port), forcePathStyle: true });
    await client.send(new CreateBucketCommand({ Bucket: bucket }));
    const mebibytes = context.quick ? 128 : 1024;
    const complete = Buffer.alloc(mebibytes * mebi);
    for (let at = 0; at < complete.length; at += mebi) randomBytes(mebi).copy(complete, at);
    const upload = async (Key: string, Body: Buffer) => {
      const params = { Bucket: bucket, Key, Body };
      await new Upload({ client, params, partSize: 8 * mebi, queueSize: 10 }).done();
    };
    const path = join(bare.path, "bare");
    // A client and a server that have just started compile their code and start threads, which takes a fifth of a
    // second of the first upload.
    const warming = complete.subarray(0, warmingMebibytes * mebi);
    await upload("warming", warming);
    await writeBare(`${path}-warming`, warming.subarray(0, mebi), warmingMebibytes);
    const [large, largeBare, small, smallBare]: [number[], number[], number[], number[]] = [[], [], [], []];
    for (let round = 0; round < Math.min(context.rounds, 3); round++) {
      const uploadedMs = await timedMs(() => upload(`large-${round}`, complete));
      large.push((mebibytes * 1000) / uploadedMs);
      const bareMs = await timedMs(() => writeBare(`${path}-${round}`, complete.subarray(0, mebi), mebibytes));
      largeBare.push((mebibytes * 1000) / bareMs);
      const putsMs = await timedMs(async () => {
        for (let index = 0; index < smallCount; index++) {
          const Key = `small-${round}-${index}`;
          await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: complete.subarray(0, 1000) }));
        }
      });
      small.push(putsMs / smallCount);
      const syncsMs = await timedMs(async () => {
        for (let index = 0; index < smallCount; index++)
          await writeBare(`${path}-${round}-${index}`, complete.subarray(0, 1000), 1);
      });
      smallBare.push(syncsMs / smallCount);
      context.log(
        `upload, round ${round + 1}: ${large.at(-1)?.toFixed(0)} MiB/s, bare ${largeBare.at(-1)?.toFixed(0)} MiB/s`,
      );
    }
    client.destroy();
    return [
      {
        what: `S3 upload of ${mebibytes} MiB in parts, beside a bare write with MD5 and sync`,
        unit: "MiB/s",
        ours: large,
        oracle: largeBare,
        goal: { kind: "at least", of: "ratio", value: 0.6 },
      },
      { what: "S3 put of 1 kB, beside a bare write and sync", unit: "ms", ours: small, oracle: smallBare, goal: null },
    ];
  },
};
