import { createHash } from "node:crypto";
import type { UnpackedArchive } from "../objects/index.ts";
import type { ModelArchive } from "./model-trees.ts";

export type ModelMemory = "absent" | "loading" | "loaded" | "unloading";

/** One archive version of one target model on one instance. Only `ModelCache` and `DiskCache` change it. */
export interface ModelVersion extends ModelArchive {
  tree: UnpackedArchive | null;
  /** False for a tree of an earlier life of the platform that has not been compared with its fingerprints yet. */
  isChecked: boolean;
  memory: ModelMemory;
  /** What the running load is doing, for those whose wait ends before it. */
  phase: string;
  load: Promise<void> | null;
  unload: Promise<void> | null;
  /** Requests that use it or wait for it; above zero it is not evicted. */
  pinCount: number;
  /** By the monotonic clock: when a request last came or went. */
  usedNs: number;
  /** Replaced or deleted in the store: goes away when nobody uses it. */
  retired: boolean;
  checkedAtMs: number;
}

export function createModelVersion(
  target: string,
  found: { readonly etag: string; readonly byteLength: number },
  checkedAtMs: number,
): ModelVersion {
  return {
    id: containerModelId(target, found.etag),
    target,
    etag: found.etag,
    archiveBytes: found.byteLength,
    tree: null,
    isChecked: true,
    memory: "absent",
    phase: "",
    load: null,
    unload: null,
    pinCount: 0,
    usedNs: 0,
    retired: false,
    checkedAtMs,
  };
}

/** Opaque, stable, of the characters the contract allows; equal for equal archives of one target only. */
export function containerModelId(target: string, etag: string): string {
  return createHash("sha256").update(`${target}\0${etag}`).digest("hex").slice(0, 32);
}
