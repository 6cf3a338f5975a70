import { rm } from "node:fs/promises";
import { parentPort } from "node:worker_threads";
import { createGunzip, constants as zlibConstants } from "node:zlib";
import { ArchiveError, type UnpackedArchive } from "./archive.ts";
import { isWholeTree } from "./archive-check.ts";
import { ArchiveTree, type TreeOptions } from "./archive-tree.ts";
import { TarReader } from "./archive-tar.ts";

/** Messages to an unpacking thread. `data` owns its bytes. */
export type ToUnpackThread =
  | { readonly kind: "start"; readonly job: number; readonly tree: TreeOptions }
  | { readonly kind: "data"; readonly job: number; readonly bytes: Uint8Array }
  | { readonly kind: "end"; readonly job: number }
  | { readonly kind: "check"; readonly job: number; readonly destination: string; readonly tree: UnpackedArchive }
  | { readonly kind: "abort"; readonly job: number };

/** `credit` says how many source bytes were consumed; `progress` how many bytes the tree holds by now. */
export type FromUnpackThread =
  | { readonly kind: "credit"; readonly job: number; readonly byteLength: number; readonly expandedBytes: number }
  | { readonly kind: "done"; readonly job: number; readonly tree: UnpackedArchive }
  | { readonly kind: "checked"; readonly job: number; readonly isWhole: boolean }
  | {
      readonly kind: "failed";
      readonly job: number;
      readonly reason: ArchiveError["reason"];
      readonly message: string;
    };

/** Larger than the 16 KiB default: a level 0 archive of weights passes in a tenth of the hops. */
const inflateChunkBytes = 512 * 1024;

const port = parentPort;
const jobs = new Map<number, UnpackJob>();
const checks = new Map<number, AbortController>();

class UnpackJob {
  readonly #id: number;
  readonly #options: TreeOptions;
  readonly #waiting: Uint8Array[] = [];
  #ended = false;
  #aborted = false;
  #wake: () => void = () => {};

  constructor(id: number, options: TreeOptions) {
    this.#id = id;
    this.#options = options;
  }

  push(bytes: Uint8Array): void {
    this.#waiting.push(bytes);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  abort(): void {
    this.#aborted = true;
    this.#wake();
  }

  async run(): Promise<void> {
    const tree = new ArchiveTree(this.#options);
    try {
      const result = await this.#unpack(tree);
      port?.postMessage({ kind: "done", job: this.#id, tree: result } satisfies FromUnpackThread);
    } catch (thrown) {
      tree.close();
      await rm(this.#options.destination, { recursive: true, force: true });
      const { reason, message } = ArchiveError.from(thrown);
      port?.postMessage({ kind: "failed", job: this.#id, reason, message } satisfies FromUnpackThread);
    }
  }

  async #unpack(tree: ArchiveTree): Promise<UnpackedArchive> {
    const reader = new TarReader(tree);
    const source = this.#chunks(tree);
    const head = await firstBytes(source);
    const gzip = head.length >= 2 && head[0] === 0x1f && head[1] === 0x8b;
    if (!gzip) {
      reader.write(head);
      for await (const chunk of source) reader.write(asBuffer(chunk));
    } else {
      await this.#inflate(head, source, reader);
    }
    reader.end(gzip);
    return tree.finish();
  }

  async #inflate(head: Buffer, source: AsyncGenerator<Uint8Array>, reader: TarReader): Promise<void> {
    const { limits } = this.#options;
    const gunzip = createGunzip({ chunkSize: inflateChunkBytes, finishFlush: zlibConstants.Z_FINISH });
    let compressedBytes = head.length;
    const feed = async () => {
      for (let chunk: Uint8Array | undefined = head; chunk !== undefined;) {
        if (!gunzip.write(chunk)) await drained(gunzip);
        const next: IteratorResult<Uint8Array, void> = await source.next();
        chunk = next.done === true ? undefined : next.value;
        compressedBytes += chunk?.length ?? 0;
      }
      gunzip.end();
    };
    const feeding = feed().catch((error: Error) => {
      gunzip.destroy(error);
    });
    try {
      let inflatedBytes = 0;
      for await (const chunk of gunzip as AsyncIterable<Buffer>) {
        inflatedBytes += chunk.length;
        if (inflatedBytes > limits.expansionBytesFree && inflatedBytes > compressedBytes * limits.expansionRatioMax) {
          throw new ArchiveError("limit", `the archive expands more than ${limits.expansionRatioMax} times`);
        }
        reader.write(chunk);
        if (this.#aborted) throw new ArchiveError("io", "unpacking was abandoned");
      }
    } finally {
      gunzip.destroy();
      this.#aborted = true;
      this.#wake();
      await feeding;
    }
  }

  /** Hands chunks on and returns credit for each when the next one is asked for. */
  async *#chunks(tree: ArchiveTree): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const chunk = this.#waiting.shift();
      if (chunk !== undefined) {
        yield chunk;
        const { length: byteLength } = chunk;
        const expandedBytes = tree.expandedBytes;
        port?.postMessage({ kind: "credit", job: this.#id, byteLength, expandedBytes } satisfies FromUnpackThread);
        continue;
      }
      if (this.#aborted) throw new ArchiveError("io", "unpacking was abandoned");
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** At least two bytes unless the source is shorter. */
async function firstBytes(source: AsyncGenerator<Uint8Array, void>): Promise<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  while (head.length < 2) {
    const next = await source.next();
    if (next.done === true) break;
    head = head.length === 0 ? asBuffer(next.value) : Buffer.concat([head, next.value]);
  }
  return head;
}

function drained(stream: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void) => {
      stream.removeListener("drain", onDrain);
      stream.removeListener("close", onClose);
      finish();
    };
    const onDrain = () => settle(resolve);
    const onClose = () => settle(() => reject(new Error("closed")));
    stream.on("drain", onDrain);
    stream.on("close", onClose);
  });
}

async function check({ job, destination, tree }: ToUnpackThread & { readonly kind: "check" }): Promise<void> {
  const aborter = new AbortController();
  checks.set(job, aborter);
  try {
    const isWhole = await isWholeTree(destination, tree, aborter.signal);
    port?.postMessage({ kind: "checked", job, isWhole } satisfies FromUnpackThread);
  } catch (thrown) {
    const { reason, message } = ArchiveError.from(thrown);
    port?.postMessage({ kind: "failed", job, reason, message } satisfies FromUnpackThread);
  } finally {
    checks.delete(job);
  }
}

port?.on("message", (message: ToUnpackThread) => {
  const job = jobs.get(message.job);
  switch (message.kind) {
    case "start": {
      const started = new UnpackJob(message.job, message.tree);
      jobs.set(message.job, started);
      void started.run().finally(() => jobs.delete(message.job));
      return;
    }
    case "data":
      job?.push(message.bytes);
      return;
    case "end":
      job?.end();
      return;
    case "check":
      void check(message);
      return;
    case "abort":
      job?.abort();
      checks.get(message.job)?.abort();
  }
});
