import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger, type Clock, type Logger } from "@galatea/base";
import { openDirectoryStore, type BucketStore } from "../../objects/index.ts";
import type { Documents } from "../../records/index.ts";
import { DocumentMemory, MemoryDocuments } from "../../records/contracts/index.ts";
import type { LogLimits } from "../stored-log-streams.ts";
import { openChunkedLogStreams } from "./index.ts";

export const chunksBucket = "galatea-logs-test";

/** Records and an object store in memory and a folder, for several platforms one after another. */
export async function openChunkPlatforms(
  { clock, ...limits }: { readonly clock: Clock } & LogLimits,
  {
    logger = silentLogger,
    localBytesMax = 2 ** 30,
  }: { readonly logger?: Logger; readonly localBytesMax?: number } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), "chunked-logs-"));
  const store: BucketStore = await openDirectoryStore({ folder: join(folder, "objects"), logger: silentLogger });
  const memory = new DocumentMemory();
  const opened: AsyncDisposable[] = [];
  let idCount = 0;
  const localOf = (machine: string) => join(folder, machine);
  return {
    memory,
    store,
    localOf,
    /** Opens the log streams of a platform. `machine` names its data directory. */
    async open(machine = "a", more: { readonly store?: BucketStore; readonly documents?: Documents } = {}) {
      const logs = await openChunkedLogStreams({
        documents: new MemoryDocuments(memory),
        store,
        bucket: chunksBucket,
        directory: localOf(machine),
        clock,
        logger,
        newId: () => `id${(idCount += 1)}`,
        localBytesMax,
        ...limits,
        ...more,
      });
      opened.push(logs);
      return logs;
    },
    /** Returns the keys of all objects. */
    keys: async () => {
      const all = { prefix: "", delimiter: "", startAfter: "", keysMax: 1000 };
      return (await store.list(chunksBucket, all)).objects.map(({ key }) => key);
    },
    /** Returns the local files of a machine. */
    files: async (machine = "a") =>
      (await readdir(localOf(machine), { recursive: true })).filter((name) => name.endsWith(".log")),
    recordsOf: (kind: string) => [...memory.held.values()].filter((each) => each.kind === kind),
    async [Symbol.asyncDispose]() {
      for (const logs of opened) await logs[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}
