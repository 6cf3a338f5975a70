import { limitCost, type ModelCostSet, type LoadCostHistory } from "./load-costs.ts";
import type { DiskCache } from "./disk-cache.ts";
import type { ListedModel } from "./model-container.ts";
import type { ModelVersion } from "./model-version.ts";

export interface AdoptedModels {
  /** The models on disk, in the order in which they were unpacked. */
  readonly versions: readonly { readonly version: ModelVersion; readonly isLoaded: boolean }[];
  /** The ids of loaded models that are not on disk. Their targets are unknown. */
  readonly unknownIds: readonly string[];
}

/**
 * Adopts the models that a previous run of the platform unpacked on an instance's disk. Reserves memory for the models that the container has
 * loaded. The files of each model are checked before its next load (`DiskCache.wholeTree`).
 */
export async function adoptModels(
  loaded: readonly ListedModel[],
  on: {
    readonly disk: DiskCache;
    readonly memory: ModelCostSet;
    readonly costs: LoadCostHistory;
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
    memory.set(limitCost(charge, memoryBytesMax));
    return { version, isLoaded: true };
  });
  return { versions, unknownIds: [...measured.keys()] };
}

/** Returns the memory of a model without shared contents: the measured memory of its load minus the contents that this load added. */
export function measuredOwnBytes(memoryBytes: number, newContents: readonly { readonly byteLength: number }[]): number {
  return Math.max(
    0,
    newContents.reduce((left, { byteLength }) => left - byteLength, memoryBytes),
  );
}
