import { closeSync, openSync, readSync } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { BodyDigest, type DigestName } from "./checksum.ts";
import { hashThreadNiceness } from "./hash-niceness.ts";

export type HashRequest =
  | {
      readonly at: "open";
      readonly id: number;
      readonly path: string;
      readonly offset: number;
      readonly names: readonly DigestName[];
    }
  | { readonly at: "written" | "end"; readonly id: number; readonly byteLength: number }
  | { readonly at: "cancel"; readonly id: number };

/** The only reply for a body. The id is invalid afterwards. */
export type HashReply =
  | { readonly id: number; readonly digests: Partial<Record<DigestName, string>> }
  | { readonly id: number; readonly failure: string };

/**
 * Files that are hashed while they are written. Their bytes are read from the page cache, so that no bytes are sent
 * between processes.
 */
const following = new Map<number, { file: number; offset: number; at: number; digest: BodyDigest }>();
const buffer = Buffer.allocUnsafe(2 ** 20);

function serve(order: HashRequest): HashReply | null {
  if (order.at === "open") {
    const { offset } = order;
    following.set(order.id, { file: openSync(order.path, "r"), offset, at: 0, digest: new BodyDigest(order.names) });
    return null;
  }
  const job = following.get(order.id);
  if (job === undefined) return null;
  if (order.at === "cancel") {
    forget(order.id);
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
  forget(order.id);
  return { id: order.id, digests: job.digest.digest() };
}

function forget(id: number): void {
  const job = following.get(id);
  following.delete(id);
  if (job !== undefined) closeSync(job.file);
}

// Sets the priority of this thread on Linux. On other systems it affects the whole process, which only hashes.
setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + hashThreadNiceness));
parentPort?.on("message", (order: HashRequest) => {
  let reply: HashReply | null;
  try {
    reply = serve(order);
  } catch (error) {
    forget(order.id);
    reply = { id: order.id, failure: (error as Error).message };
  }
  if (reply !== null) parentPort?.postMessage(reply, []);
});
