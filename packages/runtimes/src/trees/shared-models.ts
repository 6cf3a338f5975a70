import { stat } from "node:fs/promises";
import { InferenceError } from "@galatea/base";
import { discardMemory } from "@galatea/base/system";
import { type SessionLease, SharedSessions } from "@galatea/server/backends";
import type { TreeModel } from "./evaluation/evaluator.ts";
import type { WasmMemory } from "./evaluation/web-assembly.ts";
import { ModelReader } from "./model-reader.ts";
import type { ReadTreeModelOptions } from "./read-tree-model.ts";

/** A model that has been read. */
export interface OpenModel extends AsyncDisposable {
  /** Never reused. */
  readonly id: number;
  readonly model: TreeModel;
}

interface SharedModelsOptions {
  readonly workspaceCount: number;
  /** Called before the memory of an unused model is freed. */
  readonly onClosed: (id: number) => void;
}

/** Models by file and configuration: loads of the same file, also by hard links, share its trees. */
export class SharedModels implements AsyncDisposable {
  readonly #options: SharedModelsOptions;
  readonly #reader = new ModelReader();
  readonly #shared = new SharedSessions<OpenModel>();
  /** Several loads may share a read, so none of them aborts it; the length of the file bounds it. */
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
        // Threads that have used it keep it until their garbage collectors run, which does not happen in idle threads.
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

/** The key is equal while the file has the same bytes. */
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
