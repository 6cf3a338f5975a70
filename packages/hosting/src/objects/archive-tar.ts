import { Header, Pax } from "tar";
import { ArchiveError } from "./archive.ts";

const blockBytes = 512;
/** Bounds GNU long names and pax records, which are held in memory. */
const metaBytesMax = 1024 * 1024;

export type TarEntry =
  | { readonly kind: "file"; readonly path: string; readonly byteLength: number; readonly executable: boolean }
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string }
  | { readonly kind: "hardlink"; readonly path: string; readonly target: string };

/** `data` views are valid during the call only. Calls come in the archive's order; a file's bytes between begin and end. */
export interface TarSink {
  entry(entry: TarEntry): void;
  data(bytes: Buffer): void;
  fileEnd(): void;
}

type State =
  | { readonly at: "header" }
  | { readonly at: "file"; left: number }
  | { readonly at: "meta"; readonly type: string; left: number; readonly parts: Buffer[] }
  | { readonly at: "padding"; left: number }
  | { readonly at: "end" };

/**
 * Reads a tar stream of any chunking synchronously: back-pressure is the caller's. Headers and pax records are decoded
 * by the `tar` package; names may come as ustar prefix, GNU long name or pax. Throws ArchiveError.
 */
export class TarReader {
  readonly #sink: TarSink;
  #state: State = { at: "header" };
  /** A header split over chunks. */
  #partial: Buffer = Buffer.alloc(0);
  #padding = 0;
  #pax: Pax | undefined;
  #globalPax: Pax | undefined;
  #longPath: string | undefined;
  #longLink: string | undefined;
  #zeroBlocks = 0;
  #entriesSeen = 0;

  constructor(sink: TarSink) {
    this.#sink = sink;
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
      const taken = rest.subarray(0, Math.min(state.left, rest.length));
      rest = rest.subarray(taken.length);
      state.left -= taken.length;
      if (state.at === "file") this.#sink.data(taken);
      if (state.at === "meta") state.parts.push(Buffer.from(taken));
      if (state.left === 0) this.#finishSection(state);
    }
  }

  /** `integrityKnown`: the stream had its own checksum (gzip), so a missing end mark is a writer's habit, not a loss. */
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
        this.#sink.entry({ kind: "file", path, byteLength, executable: ((header.mode ?? 0) & 0o111) !== 0 });
        this.#enter({ at: "file", left: byteLength });
        return;
      case "Directory":
      case "GNUDumpDir":
        this.#sink.entry({ kind: "directory", path });
        break;
      case "SymbolicLink":
        this.#sink.entry({ kind: "symlink", path, target });
        break;
      case "Link":
        this.#sink.entry({ kind: "hardlink", path, target });
        // Some writers state the size of the linked file although no bytes follow a hard link.
        this.#padding = 0;
        return;
      default:
        throw new ArchiveError("unsafe", `the archive holds an entry of type ${header.type}: ${printable(path)}`);
    }
    this.#enter({ at: "padding", left: byteLength + this.#padding });
    this.#padding = 0;
  }

  /** A section without bytes ends where it begins. */
  #enter(state: Exclude<State, { at: "header" } | { at: "end" }>): void {
    this.#state = state;
    if (state.left === 0) this.#finishSection(state);
  }

  #finishSection(state: Exclude<State, { at: "header" } | { at: "end" }>): void {
    if (state.at === "file") this.#sink.fileEnd();
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

export function printable(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}...` : path);
}
