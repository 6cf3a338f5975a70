import { clipCharge, type ChargedSet, type CostBook } from "./charges.ts";
import type { DiskCache } from "./disk-cache.ts";
import type { ContainedModel } from "./model-container.ts";
import type { ModelVersion } from "./model-version.ts";

export interface AdoptedModels {
  /** What is on the disk, last unpacked last. */
  readonly versions: readonly { readonly version: ModelVersion; readonly isLoaded: boolean }[];
  /** What the container has loaded that is not on the disk: nothing is known of it but its id. */
  readonly unknownIds: readonly string[];
}

/**
 * What an earlier life of the platform unpacked on an instance's disk, and of it what its container has loaded, which is charged. Each tree is
 * compared with its fingerprints before its next load.
 */
export async function adoptModels(
  loaded: readonly ContainedModel[],
  on: {
    readonly disk: DiskCache;
    readonly memory: ChargedSet;
    readonly costs: CostBook;
    readonly memoryBytesMax: number;
  },
): Promise<AdoptedModels> {
  const { disk, memory, costs, memoryBytesMax } = on;
  const measured = new Map(loaded.map(({ id, memoryBytes }) => [id, memoryBytes]));
  const versions = (await disk.adopt()).map((version) => {
    const { id, tree } = version;
    const memoryBytes = measured.get(id);
    if (tree === null || memoryBytes === undefined) return { version, isLoaded: false };
    measured.delete(id);
    const { fingerprint, ownBytes, contents } = tree;
    if (memoryBytes !== null) costs.learn(fingerprint, measuredOwnBytes(memoryBytes, memory.newAmong(contents)));
    const charge = { key: id, ownBytes: costs.estimateOwnBytes(fingerprint, ownBytes), contents };
    memory.set(clipCharge(charge, memoryBytesMax));
    return { version, isLoaded: true };
  });
  return { versions, unknownIds: [...measured.keys()] };
}

/** What a load took for itself, of what it took in all. */
export function measuredOwnBytes(memoryBytes: number, newContents: readonly { readonly byteLength: number }[]): number {
  return Math.max(
    0,
    newContents.reduce((left, { byteLength }) => left - byteLength, memoryBytes),
  );
}
