import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "../../base/index.ts";
import { type SessionLease, SharedSessions } from "../shared-sessions.ts";
import type { ConversionOrder } from "./convert-model.ts";
import { Converter } from "./converter.ts";

/** A directory with the `model.onnx` that a file was converted to. */
export interface ConvertedModel extends AsyncDisposable {
  readonly directory: string;
}

/** Converted models by the file and the configuration that they come from: models that share a file, by hard links, share the result. */
export class ConvertedModels implements AsyncDisposable {
  readonly #directory: string;
  readonly #converter = new Converter();
  readonly #shared = new SharedSessions<ConvertedModel>();
  /** A conversion may be several loads', so none of them ends it; the length of the file bounds it. */
  readonly #closing = new AbortController();
  #lastId = 0;

  /** What is written to `directory` is removed with the last lease of it. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  async lease(order: Omit<ConversionOrder, "onnxPath">): Promise<SessionLease<ConvertedModel>> {
    const { key, byteLength } = await fileAt(order.modelPath);
    const { parameters, asked } = order;
    const open = () => this.#convert(order, byteLength);
    return this.#shared.lease(`${key} ${JSON.stringify({ parameters, asked })}`, {
      bytes: () => 0,
      onCharged: null,
      open,
    });
  }

  async #convert(order: Omit<ConversionOrder, "onnxPath">, byteLength: number): Promise<ConvertedModel> {
    this.#lastId += 1;
    const directory = join(this.#directory, String(this.#lastId));
    const remove = () => rm(directory, { recursive: true, force: true });
    const { signal } = this.#closing;
    try {
      await this.#converter.convert({ ...order, onnxPath: join(directory, "model.onnx") }, { byteLength, signal });
    } catch (error) {
      await remove();
      throw error;
    }
    return { directory, [Symbol.asyncDispose]: remove };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new InferenceError("UNAVAILABLE", "Server exiting"));
    await this.#converter[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** The key is the same as long as the file has the same bytes. */
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
