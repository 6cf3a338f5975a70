import { TaskGroup, type Logger } from "@galatea/base";
import { absentAsNull, type ObjectStore } from "../objects/index.ts";
import { nameKey, parseS3Uri, type ContainerDefinition, type ModelRecord } from "../definitions/index.ts";
import { containerOwnBytes } from "../endpoints/index.ts";
import type { HostingStore, ModelMemoryRecord } from "../store/index.ts";

export interface ModelMemoriesOptions {
  readonly store: HostingStore;
  /** Where models' data lies. */
  readonly objects: Pick<ObjectStore, "head" | "list">;
  readonly logger: Logger;
}

/** More than this by which a container has grown is written down. */
const growthShare = 1 / 16;
const growthBytesMin = 8 * 2 ** 20;
/** Of a model whose data are objects below a prefix: those of so many pages of a thousand are added up. */
const pagesMax = 10;

/** What is known of the memory that models take: what containers of theirs were seen to take, and before that what their data weigh. */
export class ModelMemories implements AsyncDisposable {
  readonly #options: ModelMemoriesOptions;
  readonly #tasks: TaskGroup;
  /** Models whose memory is being written down. */
  readonly #writing = new Set<string>();
  /** What is known to be written, by the model as whoever runs it holds it: it is looked at every few seconds, and nothing is read for that. */
  readonly #known = new WeakMap<ModelRecord, readonly number[]>();

  constructor(options: ModelMemoriesOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("what a model takes of memory could not be written down", { error: String(error) });
    });
  }

  /**
   * What the models of each container are to be reserved, in the order of the containers: the most that a container of this model took
   * before, or else the length of its data, which is what has to be brought into memory at least. Zero for many models.
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

  /** Remembers what is more than before. What fails is tried again when it is seen again. */
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

  /** Gives what is written now, or need not be. */
  async #remember(model: ModelRecord, seenBytes: readonly number[]): Promise<readonly number[]> {
    const { store } = this.#options;
    const { modelMemories, models } = store.kinds;
    const key = nameKey(model.name);
    return await store.attempt(async () => {
      const [recorded, found] = [await models.find(key), await modelMemories.find(key)];
      // It was deleted, or another one has its name.
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
    // What is not there is told of when it is to be brought.
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

/** The larger of each; null where none is so much larger that it is worth a write. */
export function grown(before: readonly number[], seen: readonly number[]): readonly number[] | null {
  const isMore = seen.some((bytes, index) => {
    const known = before[index] ?? 0;
    return bytes > known + (known === 0 ? 0 : Math.max(growthBytesMin, known * growthShare));
  });
  return isMore ? seen.map((bytes, index) => Math.max(bytes, before[index] ?? 0)) : null;
}
