import { TaskGroup, type Logger } from "@galatea/base";
import { absentAsNull, type ObjectStore } from "../objects/index.ts";
import { nameKey, parseS3Uri, type ContainerDefinition, type ModelRecord } from "../definitions/index.ts";
import { containerOwnBytes } from "../endpoints/index.ts";
import type { HostingStore, ModelMemoryRecord } from "../store/index.ts";

export interface ModelMemoriesOptions {
  readonly store: HostingStore;
  /** The objects with the models' data. */
  readonly objects: Pick<ObjectStore, "head" | "list">;
  readonly logger: Logger;
}

/** Minimum growth of a container's memory that is recorded. */
const growthShare = 1 / 16;
const growthBytesMin = 8 * 2 ** 20;
/** Maximum number of listing pages (1,000 objects each) that are added up for a model whose data is a prefix. */
const pagesMax = 10;

/**
 * Memory that models need: as measured in their containers, and before the first measurement the size of their data.
 */
export class ModelMemories implements AsyncDisposable {
  readonly #options: ModelMemoriesOptions;
  readonly #tasks: TaskGroup;
  /** Keys of models whose memory is being recorded. */
  readonly #writing = new Set<string>();
  /** Recorded values by model object: values are reported every few seconds, and this saves a read. */
  readonly #known = new WeakMap<ModelRecord, readonly number[]>();

  constructor(options: ModelMemoriesOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("a model's memory could not be recorded", { error: String(error) });
    });
  }

  /**
   * Returns the memory to reserve for each container of a model, in the order of the containers: the most that a
   * container took before, or else the size of its data, which has to be loaded at least. Zero for multi-model
   * containers.
   */
  async expectedBytes(model: ModelRecord): Promise<readonly number[]> {
    const found = await this.#options.store.kinds.modelMemories.find(nameKey(model.name));
    const known = found.at === "found" && isOf(found.value, model) ? found.value.mostBytes : [];
    const each = model.containers.map(async (container, index) => {
      if (container.Mode === "MultiModel") return 0;
      const mostBytes = known[index] ?? 0;
      return mostBytes > 0 ? Math.max(0, mostBytes - containerOwnBytes) : await this.#dataBytes(container);
    });
    return await Promise.all(each);
  }

  /** Records memory that exceeds the known values. A failed write is retried at the next measurement. */
  seen(model: ModelRecord, mostBytes: readonly number[]): void {
    const key = nameKey(model.name);
    if (this.#writing.has(key) || grown(this.#known.get(model) ?? [], mostBytes) === null) return;
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

  /** Returns the recorded values. */
  async #remember(model: ModelRecord, seenBytes: readonly number[]): Promise<readonly number[]> {
    const { store } = this.#options;
    const { modelMemories, models } = store.kinds;
    const key = nameKey(model.name);
    return await store.attempt(async () => {
      const [recorded, found] = [await models.find(key), await modelMemories.find(key)];
      // The model was deleted, or another model has its name.
      if (recorded.at !== "found" || recorded.value.createdMs !== model.createdMs) return seenBytes;
      const before = found.at === "found" && isOf(found.value, model) ? found.value.mostBytes : [];
      const mostBytes = grown(before, seenBytes);
      if (mostBytes === null) return before;
      const record = { modelCreatedMs: model.createdMs, mostBytes };
      const expects = found.at === "absent" ? "absent" : found.version;
      await store.write([modelMemories.put(key, record, expects), models.check(key, recorded.version)]);
      return mostBytes;
    });
  }

  async #dataBytes({ ModelDataUrl: url, ModelDataSource: given }: ContainerDefinition): Promise<number> {
    const source = given?.S3DataSource;
    const place = parseS3Uri(source?.S3Uri ?? url ?? "");
    if (place === null) return 0;
    const { objects } = this.#options;
    const isPrefix = source !== undefined && source.CompressionType !== "Gzip" && source.S3DataType === "S3Prefix";
    // A missing object is reported when it is downloaded.
    if (!isPrefix) return (await absentAsNull(objects.head(place.bucket, place.key)))?.byteLength ?? 0;
    let [bytes, startAfter] = [0, ""];
    for (let pageCount = 0; pageCount < pagesMax; pageCount += 1) {
      const options = { prefix: place.key, delimiter: "", startAfter, keysMax: 1000 };
      const page = await absentAsNull(objects.list(place.bucket, options));
      for (const { byteLength } of page?.objects ?? []) bytes += byteLength;
      if (page === null || page.nextStartAfter === null) break;
      startAfter = page.nextStartAfter;
    }
    return bytes;
  }
}

const isOf = (record: ModelMemoryRecord, model: ModelRecord) => record.modelCreatedMs === model.createdMs;

/** Returns the larger of each pair; null where none has grown enough for a write. */
export function grown(before: readonly number[], seen: readonly number[]): readonly number[] | null {
  const isMore = seen.some((bytes, index) => {
    const known = before[index] ?? 0;
    return bytes > known + (known === 0 ? 0 : Math.max(growthBytesMin, known * growthShare));
  });
  return isMore ? seen.map((bytes, index) => Math.max(bytes, before[index] ?? 0)) : null;
}
