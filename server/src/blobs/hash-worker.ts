import { closeSync, openSync, readSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { BodyDigest, type DigestName } from "./checksum.ts";

export type HashOrder =
  | {
      readonly at: "open";
      readonly id: number;
      readonly path: string;
      readonly offset: number;
      readonly names: readonly DigestName[];
    }
  | { readonly at: "written" | "end"; readonly id: number; readonly byteLength: number }
  | { readonly at: "cancel"; readonly id: number };

export type HashReply =
  | { readonly id: number; readonly digests: Partial<Record<DigestName, string>> }
  | { readonly id: number; readonly failure: string };

/** Follows files while they are written, reading them back from the page cache: no byte crosses between threads. */
const following = new Map<number, { file: number; offset: number; at: number; digest: BodyDigest }>();
const buffer = Buffer.allocUnsafe(2 ** 20);

function serve(order: HashOrder): HashReply | null {
  if (order.at === "open") {
    const { offset } = order;
    following.set(order.id, { file: openSync(order.path, "r"), offset, at: 0, digest: new BodyDigest(order.names) });
    return null;
  }
  const job = following.get(order.id);
  if (job === undefined) return null;
  if (order.at === "cancel") {
    following.delete(order.id);
    closeSync(job.file);
    return null;
  }
  while (job.at < order.byteLength) {
    const count = readSync(
      job.file,
      buffer,
      0,
      Math.min(buffer.byteLength, order.byteLength - job.at),
      job.offset + job.at,
    );
    if (count === 0) throw new Error(`the file ended at ${job.at} of ${order.byteLength} bytes`);
    job.digest.update(buffer.subarray(0, count));
    job.at += count;
  }
  if (order.at === "written") return null;
  following.delete(order.id);
  closeSync(job.file);
  return { id: order.id, digests: job.digest.digest() };
}

parentPort?.on("message", (order: HashOrder) => {
  let reply: HashReply | null;
  try {
    reply = serve(order);
  } catch (error) {
    reply = { id: order.id, failure: String(error) };
  }
  if (reply !== null) parentPort?.postMessage(reply, []);
});
