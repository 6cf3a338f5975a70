import { rm } from "node:fs/promises";
import { parentPort } from "node:worker_threads";
import { createGunzip, constants as zlibConstants } from "node:zlib";
import { Header, Pax } from "tar";
import { ArchiveError, type UnpackedArchive } from "./archive.ts";
import { isTreeUnchanged } from "./archive-check.ts";
import { ArchiveTree, printablePath, type ArchiveTreeOptions } from "./archive-tree.ts";

/** Messages to an unpacking thread. The bytes of a `data` message belong to the thread. */
export type UnpackThreadRequest =
  | { readonly kind: "start"; readonly job: number; readonly tree: ArchiveTreeOptions }
  | { readonly kind: "data"; readonly job: number; readonly bytes: Uint8Array }
  | { readonly kind: "end"; readonly job: number }
  | { readonly kind: "check"; readonly job: number; readonly destination: string; readonly tree: UnpackedArchive }
  | { readonly kind: "abort"; readonly job: number };

/** Messages from an unpacking thread. `credit`: the number of consumed source bytes and the bytes of the tree so far. */
export type UnpackThreadReply =
  | { readonly kind: "credit"; readonly job: number; readonly byteLength: number; readonly expandedBytes: number }
  | { readonly kind: "done"; readonly job: number; readonly tree: UnpackedArchive }
  | { readonly kind: "checked"; readonly job: number; readonly isWhole: boolean }
  | {
      readonly kind: "failed";
      readonly job: number;
      readonly reason: ArchiveError["reason"];
      readonly message: string;
    };

/** Size of inflated chunks. Node's default of 16 KiB would make ten times as many chunks of an archive without compression. */
const inflateChunkBytes = 512 * 1024;

const blockBytes = 512;
/** Maximum bytes of a GNU long name or pax record, because both are buffered. */
const metaBytesMax = 1024 * 1024;

const port = parentPort;
const jobs = new Map<number, UnpackJob>();
const checks = new Map<number, AbortController>();

class UnpackJob {
  readonly #id: number;
  readonly #options: ArchiveTreeOptions;
  readonly #waiting: Uint8Array[] = [];
  #ended = false;
  #aborted = false;
  #wake: () => void = () => {};

  constructor(id: number, options: ArchiveTreeOptions) {
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
      port?.postMessage({ kind: "done", job: this.#id, tree: result } satisfies UnpackThreadReply);
    } catch (thrown) {
      tree.close();
      await rm(this.#options.destination, { recursive: true, force: true });
      const { reason, message } = ArchiveError.from(thrown);
      port?.postMessage({ kind: "failed", job: this.#id, reason, message } satisfies UnpackThreadReply);
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

  /** Yields the received chunks. Reports the bytes of a chunk as consumed when the next chunk is requested. */
  async *#chunks(tree: ArchiveTree): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const chunk = this.#waiting.shift();
      if (chunk !== undefined) {
        yield chunk;
        const { length: byteLength } = chunk;
        const expandedBytes = tree.expandedBytes;
        port?.postMessage({ kind: "credit", job: this.#id, byteLength, expandedBytes } satisfies UnpackThreadReply);
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

/** Reads the first two or more bytes, which distinguish gzip from tar. Returns fewer only if the source is shorter. */
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

async function check({ job, destination, tree }: UnpackThreadRequest & { readonly kind: "check" }): Promise<void> {
  const aborter = new AbortController();
  checks.set(job, aborter);
  try {
    const isWhole = await isTreeUnchanged(destination, tree, aborter.signal);
    port?.postMessage({ kind: "checked", job, isWhole } satisfies UnpackThreadReply);
  } catch (thrown) {
    const { reason, message } = ArchiveError.from(thrown);
    port?.postMessage({ kind: "failed", job, reason, message } satisfies UnpackThreadReply);
  } finally {
    checks.delete(job);
  }
}

type TarState =
  | { readonly at: "header" }
  | { readonly at: "file"; left: number }
  | { readonly at: "meta"; readonly type: string; left: number; readonly parts: Buffer[] }
  | { readonly at: "padding"; left: number }
  | { readonly at: "end" };

/**
 * Parses a tar stream in chunks of any size and writes its entries to a tree. Synchronous; the caller applies back-pressure. The
 * `tar` package decodes headers and pax records. Names may be in the ustar prefix, a GNU long name or a pax record. Throws
 * ArchiveError.
 */
class TarReader {
  readonly #tree: ArchiveTree;
  #state: TarState = { at: "header" };
  /** The first bytes of a header that continues in the next chunk. */
  #partial: Buffer = Buffer.alloc(0);
  #padding = 0;
  #pax: Pax | undefined;
  #globalPax: Pax | undefined;
  #longPath: string | undefined;
  #longLink: string | undefined;
  #zeroBlocks = 0;
  #entriesSeen = 0;

  constructor(tree: ArchiveTree) {
    this.#tree = tree;
  }

  write(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      const state = this.#state;
      if (state.at === "end") return;
      if (state.at === "header") {
        rest = this.#readHeader(rest);
        continue;
      }
      const received = rest.subarray(0, Math.min(state.left, rest.length));
      rest = rest.subarray(received.length);
      state.left -= received.length;
      if (state.at === "file") this.#tree.data(received);
      if (state.at === "meta") state.parts.push(Buffer.from(received));
      if (state.left === 0) this.#finishSection(state);
    }
  }

  /**
   * Ends the stream. `integrityKnown`: the stream had its own checksum (gzip), so a missing end-of-archive block does not mean
   * lost data.
   */
  end(integrityKnown: boolean): void {
    if (this.#entriesSeen === 0 && this.#zeroBlocks === 0 && this.#state.at === "header") {
      const text =
        this.#partial.length === 0 ? "the archive is empty: it" : "this is no tar archive: it is too short, and";
      throw new ArchiveError("damaged", `${text} holds no tar header`);
    }
    const complete = this.#state.at === "end" || (this.#state.at === "header" && this.#partial.length === 0);
    if (!complete || (this.#state.at !== "end" && !integrityKnown && this.#zeroBlocks === 0)) {
      throw new ArchiveError("damaged", "the archive ends before its last entry is complete");
    }
  }

  #readHeader(rest: Buffer): Buffer {
    let block: Buffer;
    let after: Buffer;
    if (this.#partial.length > 0 || rest.length < blockBytes) {
      const needed = blockBytes - this.#partial.length;
      this.#partial = Buffer.concat([this.#partial, rest.subarray(0, needed)]);
      after = rest.subarray(Math.min(needed, rest.length));
      if (this.#partial.length < blockBytes) return after;
      block = this.#partial;
      this.#partial = Buffer.alloc(0);
    } else {
      block = rest.subarray(0, blockBytes);
      after = rest.subarray(blockBytes);
    }
    this.#acceptHeader(block);
    return after;
  }

  #acceptHeader(block: Buffer): void {
    const header = decodeHeader(block, this.#pax, this.#globalPax);
    if (header.nullBlock) {
      this.#zeroBlocks += 1;
      if (this.#zeroBlocks === 2) this.#state = { at: "end" };
      return;
    }
    if (!header.cksumValid) {
      throw new ArchiveError("damaged", "the archive is damaged: a tar header has a wrong checksum");
    }
    this.#zeroBlocks = 0;
    this.#entriesSeen += 1;
    const byteLength = header.size ?? 0;
    if (!Number.isSafeInteger(byteLength) || byteLength < 0) {
      throw new ArchiveError("damaged", "the archive is damaged: an entry has no valid size");
    }
    this.#padding = (blockBytes - (byteLength % blockBytes)) % blockBytes;
    if (isMeta(header.type)) {
      if (byteLength > metaBytesMax) throw new ArchiveError("limit", "an entry's name or attributes exceed 1 MiB");
      this.#enter({ at: "meta", type: header.type, left: byteLength, parts: [] });
      return;
    }
    this.#acceptEntry(header, byteLength);
  }

  #acceptEntry(header: Header, byteLength: number): void {
    const path = this.#longPath ?? header.path ?? "";
    const target = this.#longLink ?? header.linkpath ?? "";
    this.#longPath = undefined;
    this.#longLink = undefined;
    this.#pax = undefined;
    switch (header.type) {
      case "File":
      case "OldFile":
      case "ContiguousFile":
        this.#tree.entry({ kind: "file", path, byteLength, executable: ((header.mode ?? 0) & 0o111) !== 0 });
        this.#enter({ at: "file", left: byteLength });
        return;
      case "Directory":
      case "GNUDumpDir":
        this.#tree.entry({ kind: "directory", path });
        break;
      case "SymbolicLink":
        this.#tree.entry({ kind: "symlink", path, target });
        break;
      case "Link":
        this.#tree.entry({ kind: "hardlink", path, target });
        // Some writers set the size of the linked file although no bytes follow a hard link.
        this.#padding = 0;
        return;
      default:
        throw new ArchiveError("unsafe", `the archive holds an entry of type ${header.type}: ${printablePath(path)}`);
    }
    this.#enter({ at: "padding", left: byteLength + this.#padding });
    this.#padding = 0;
  }

  /** Enters a state. A section without bytes is finished immediately. */
  #enter(state: Exclude<TarState, { at: "header" } | { at: "end" }>): void {
    this.#state = state;
    if (state.left === 0) this.#finishSection(state);
  }

  #finishSection(state: Exclude<TarState, { at: "header" } | { at: "end" }>): void {
    if (state.at === "file") this.#tree.fileEnd();
    if (state.at === "meta") this.#acceptMeta(state.type, Buffer.concat(state.parts));
    const padding = this.#padding;
    this.#padding = 0;
    this.#state = state.at !== "padding" && padding > 0 ? { at: "padding", left: padding } : { at: "header" };
  }

  #acceptMeta(type: string, bytes: Buffer): void {
    const text = bytes.toString("utf8");
    switch (type) {
      case "ExtendedHeader":
      case "OldExtendedHeader":
        if (/(^|\n)\d+ GNU\.sparse\./.test(text)) throw new ArchiveError("unsafe", "sparse files are not supported");
        this.#pax = Pax.parse(text, this.#pax, false);
        return;
      case "GlobalExtendedHeader":
        this.#globalPax = Pax.parse(text, this.#globalPax, true);
        return;
      case "NextFileHasLongPath":
      case "OldGnuLongPath":
        this.#longPath = untilNul(text);
        return;
      default:
        this.#longLink = untilNul(text);
    }
  }
}

function decodeHeader(block: Buffer, pax: Pax | undefined, globalPax: Pax | undefined): Header {
  try {
    return new Header(block, 0, pax, globalPax);
  } catch (error) {
    throw new ArchiveError("damaged", "the archive is damaged: a tar header cannot be read", { cause: error });
  }
}

function isMeta(type: string): boolean {
  return (
    type === "ExtendedHeader" ||
    type === "OldExtendedHeader" ||
    type === "GlobalExtendedHeader" ||
    type === "NextFileHasLongPath" ||
    type === "OldGnuLongPath" ||
    type === "NextFileHasLongLinkpath"
  );
}

function untilNul(text: string): string {
  const end = text.indexOf("\0");
  return end < 0 ? text : text.slice(0, end);
}

port?.on("message", (message: UnpackThreadRequest) => {
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
