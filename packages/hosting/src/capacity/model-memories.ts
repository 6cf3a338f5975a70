import { TaskGroup, type Logger } from "@galatea/base";
import { nullIfAbsent, type ObjectStore } from "../objects/index.ts";
import { nameKey, parseS3Uri, type ContainerDefinition, type ModelRecord } from "../definitions/index.ts";
import { containerBaseBytes } from "../endpoints/index.ts";
import type { HostingStore, ModelMemoryRecord } from "../store/index.ts";

export interface ModelMemoryEstimatesOptions {
  readonly store: HostingStore;
  /** The object store that contains the models' data. */
  readonly objects: Pick<ObjectStore, "head" | "list">;
  readonly logger: Logger;
}

/**
 * Minimum growth of a container's memory, as a share and in bytes. Growth below the larger of the two is not written to
 * disk.
 */
const growthShare = 1 / 16;
const growthBytesMin = 8 * 2 ** 20;
/** Maximum number of ListObjects pages (1,000 objects each) that are read to sum up the size of a model's data. */
const pagesMax = 10;

/**
 * Estimates of the memory that models need: the measured memory of their containers, or the size of the model data before
 * the first measurement.
 */
export class ModelMemoryEstimates implements AsyncDisposable {
  readonly #options: ModelMemoryEstimatesOptions;
  readonly #tasks: TaskGroup;
  /** Keys of models whose memory is being recorded. */
  readonly #writing = new Set<string>();
  /** Cache of the values on disk. Containers report their memory every few seconds, and the cache saves a read for each report. */
  readonly #known = new WeakMap<ModelRecord, readonly number[]>();

  constructor(options: ModelMemoryEstimatesOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("failed to record the measured memory of a model; the next measurement retries", {
        error: String(error),
      });
    });
  }

  /**
   * Returns the memory to reserve for each container of a model, in the order of the containers: the maximum measured
   * memory of the container, or else the size of its model data. Zero for multi-model containers, which load models later.
   */
  async expectedBytes(model: ModelRecord): Promise<readonly number[]> {
    const found = await this.#options.store.kinds.modelMemories.find(nameKey(model.name));
    const known = found.at === "found" && isOf(found.value, model) ? found.value.mostBytes : [];
    const each = model.containers.map(async (container, index) => {
      if (container.Mode === "MultiModel") return 0;
      const mostBytes = known[index] ?? 0;
      return mostBytes > 0 ? Math.max(0, mostBytes - containerBaseBytes) : await this.#dataBytes(container);
    });
    return await Promise.all(each);
  }

  /** Records the measured maximum memory of each container if it exceeds the recorded values. The next measurement retries a failed write. */
  recordMeasured(model: ModelRecord, mostBytes: readonly number[]): void {
    const key = nameKey(model.name);
    if (this.#writing.has(key) || significantGrowth(this.#known.get(model) ?? [], mostBytes) === null) return;
    this.#writing.add(key);
    this.#tasks.run(async () => {
      try {
        this.#known.set(model, await this.#remember(model, mostBytes));
      } finally {
        this.#writing.delete(key);
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }

  /** Writes the larger of the recorded and the measured values. Resolves with the values that are now on disk. */
  async #remember(model: ModelRecord, seenBytes: readonly number[]): Promise<readonly number[]> {
    const { store } = this.#options;
    const { modelMemories, models } = store.kinds;
    const key = nameKey(model.name);
    return await store.attempt(async () => {
      const [recorded, found] = [await models.find(key), await modelMemories.find(key)];
      // The measurement is not recorded if the model was deleted, or was replaced by another model of the same name.
      if (recorded.at !== "found" || recorded.value.createdMs !== model.createdMs) return seenBytes;
      const before = found.at === "found" && isOf(found.value, model) ? found.value.mostBytes : [];
      const mostBytes = significantGrowth(before, seenBytes);
      if (mostBytes === null) return before;
      const record = { modelCreatedMs: model.createdMs, mostBytes };
      const expects = found.at === "absent" ? "absent" : found.version;
      await store.write([modelMemories.putChange(key, record, expects), models.versionCheck(key, recorded.version)]);
      return mostBytes;
    });
  }

  async #dataBytes({ ModelDataUrl: url, ModelDataSource: input }: ContainerDefinition): Promise<number> {
    const source = input?.S3DataSource;
    const location = parseS3Uri(source?.S3Uri ?? url ?? "");
    if (location === null) return 0;
    const { objects } = this.#options;
    const isPrefix = source !== undefined && source.CompressionType !== "Gzip" && source.S3DataType === "S3Prefix";
    // A missing object counts as 0 bytes here; the download of the model reports the error.
    if (!isPrefix) return (await nullIfAbsent(objects.head(location.bucket, location.key)))?.byteLength ?? 0;
    let [bytes, startAfter] = [0, ""];
    for (let pageCount = 0; pageCount < pagesMax; pageCount += 1) {
      const options = { prefix: location.key, delimiter: "", startAfter, keysMax: 1000 };
      const page = await nullIfAbsent(objects.list(location.bucket, options));
      for (const { byteLength } of page?.objects ?? []) bytes += byteLength;
      if (page === null || page.nextStartAfter === null) break;
      startAfter = page.nextStartAfter;
    }
    return bytes;
  }
}

const isOf = (record: ModelMemoryRecord, model: ModelRecord) => record.modelCreatedMs === model.createdMs;

/** Returns the element-wise maximum. Returns null if no value has grown enough to be written. */
export function significantGrowth(before: readonly number[], seen: readonly number[]): readonly number[] | null {
  const isMore = seen.some((bytes, index) => {
    const known = before[index] ?? 0;
    return bytes > known + (known === 0 ? 0 : Math.max(growthBytesMin, known * growthShare));
  });
  return isMore ? seen.map((bytes, index) => Math.max(bytes, before[index] ?? 0)) : null;
}
