import { stat } from "node:fs/promises";
import { InferenceError } from "@galatea/base";
import { discardMemory } from "@galatea/base/system";
import { type SessionLease, SharedSessions } from "@galatea/server/backends";
import type { TreeModel } from "./evaluation/evaluator.ts";
import type { WasmMemory } from "./evaluation/web-assembly.ts";
import { ModelReader } from "./model-reader.ts";
import type { ReadTreeModelOptions } from "./read-tree-model.ts";

/** A model in memory. Disposing it frees the memory. */
export interface OpenModel extends AsyncDisposable {
  /** Identifies the model in worker threads; never reused. */
  readonly id: number;
  readonly model: TreeModel;
}

interface SharedModelsOptions {
  readonly workspaceCount: number;
  /** Called with the id of a model that is no longer used, before its memory is freed. */
  readonly onClosed: (id: number) => void;
}

/** Models, by file and configuration. Loads of the same file share its trees, even through different hard links. */
export class SharedModels implements AsyncDisposable {
  readonly #options: SharedModelsOptions;
  readonly #reader = new ModelReader();
  readonly #shared = new SharedSessions<OpenModel>();
  /** Aborts reads when this object is disposed. A single load does not abort its read, because other loads may share it. */
  readonly #closing = new AbortController();
  #lastId = 0;

  constructor(options: SharedModelsOptions) {
    this.#options = options;
  }

  async lease(
    options: Omit<ReadTreeModelOptions, "workspaceCount">,
    onCharged: () => void,
  ): Promise<SessionLease<OpenModel>> {
    const { key, byteLength } = await fileAt(options.modelPath);
    const { parameters, tensors } = options;
    let memory: WasmMemory | null = null;
    const open = async () => {
      const opened = await this.#open(options, byteLength);
      ({ memory } = opened.model.forest);
      return opened;
    };
    return this.#shared.lease(`${key} ${JSON.stringify({ parameters, tensors })}`, {
      bytes: () => memory?.buffer.byteLength ?? byteLength,
      onCharged,
      open,
    });
  }

  async #open(options: Omit<ReadTreeModelOptions, "workspaceCount">, byteLength: number): Promise<OpenModel> {
    const { workspaceCount, onClosed } = this.#options;
    const { signal } = this.#closing;
    const model = await this.#reader.read({ ...options, workspaceCount }, { byteLength, signal });
    this.#lastId += 1;
    const id = this.#lastId;
    return {
      id,
      model,
      [Symbol.asyncDispose]: () => {
        onClosed(id);
        // Frees the memory now: threads that have used the model reference it until they collect garbage, which idle threads never do.
        discardMemory(model.forest.memory.buffer);
        return Promise.resolve();
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new InferenceError("UNAVAILABLE", "Server exiting"));
    await this.#reader[Symbol.asyncDispose]();
  }
}

/** Returns the length of a file, and a key that changes when the content of the file changes. */
async function fileAt(path: string): Promise<{ readonly key: string; readonly byteLength: number }> {
  try {
    const found = await stat(path, { bigint: true });
    const key = `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.birthtimeNs}`;
    if (found.isFile()) return { key, byteLength: Number(found.size) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  throw new InferenceError("UNAVAILABLE", `unable to find '${path}'`);
}
