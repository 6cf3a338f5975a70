import { createHash } from "node:crypto";
import type { UnpackedArchive } from "../objects/index.ts";
import type { ModelArchive } from "./model-trees.ts";

export type ModelMemoryState = "absent" | "loading" | "loaded" | "unloading";

/** The state of one version of a target model on one instance. Only `ModelCache`, `ModelUnloads` and `DiskCache` change it. */
export interface ModelVersion extends ModelArchive {
  tree: UnpackedArchive | null;
  /** False for a tree of a previous run whose files have not been checked yet. */
  isChecked: boolean;
  memory: ModelMemoryState;
  /** The current step of the load, for the error of a request that stops waiting. */
  phase: string;
  load: Promise<void> | null;
  unload: Promise<void> | null;
  /** Number of requests that use this version or wait for it. A version is not evicted while it is above zero. */
  pinCount: number;
  /** Monotonic time in nanoseconds at which a request last started or ended. */
  usedNs: number;
  /** True if the object was replaced or deleted. The version is removed when no request uses it. */
  retired: boolean;
  /** Monotonic time in nanoseconds at which a comparison with the object last started. */
  checkedNs: number;
}

export function createModelVersion(
  target: string,
  found: { readonly etag: string; readonly byteLength: number },
  checkedNs: number,
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
    checkedNs,
  };
}

/**
 * Returns the model's id in the container: a hash of target and ETag, in the characters that SageMaker's multi-model contract
 * allows.
 */
export function containerModelId(target: string, etag: string): string {
  return createHash("sha256").update(`${target}\0${etag}`).digest("hex").slice(0, 32);
}
