import { delay, openDeadline, type TaskGroup } from "@galatea/base";
import type { ModelCacheOptions } from "./model-cache-options.ts";
import type { ModelMemoryState, ModelVersion } from "./model-version.ts";

export interface ModelUnloadsOptions {
  readonly cache: Pick<ModelCacheOptions, "limits" | "container" | "observer" | "clock" | "logger">;
  /** The task group of the cache, which closes it. */
  readonly tasks: TaskGroup;
  readonly memoryChanged: (version: ModelVersion, memory: ModelMemoryState) => void;
  readonly ended: (version: ModelVersion) => void;
}

/** Unloads models of one container. Each unload is retried until the container confirms it. */
export class ModelUnloads {
  readonly #options: ModelUnloadsOptions;

  constructor(options: ModelUnloadsOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the model is unloaded, or immediately if it is not loaded. Concurrent calls for one model share one
   * unload.
   */
  unload(version: ModelVersion): Promise<void> {
    if (version.memory !== "loaded") return version.unload ?? Promise.resolve();
    const { memoryChanged, ended } = this.#options;
    const { clock, limits, observer, logger } = this.#options.cache;
    memoryChanged(version, "unloading");
    const { promise, resolve } = Promise.withResolvers<void>();
    version.unload = promise;
    this.#options.tasks.run(async (closing) => {
      const startNs = clock.monotonicNs();
      try {
        // The model's memory is counted until the container confirms the unload; a restarted container confirms it as well.
        for (let isGone = false; !isGone;) {
          try {
            await this.#send(version, closing);
            isGone = true;
          } catch (error) {
            closing.throwIfAborted();
            logger.warning("a model did not unload", { target: version.target, error: String(error) });
            await delay(clock, limits.unloadRetryMs, closing);
          }
        }
        observer.unloaded(version.target, (clock.monotonicNs() - startNs) / 1000);
      } finally {
        version.unload = null;
        memoryChanged(version, "absent");
        resolve();
        ended(version);
      }
    });
    return promise;
  }

  /** Starts to unload a loaded model that is not on the instance's disk; a failure is logged and not repeated. */
  unloadUnknown(id: string): void {
    this.#options.tasks.run(async (closing) => {
      try {
        await this.#send({ id, target: null }, closing);
      } catch (error) {
        closing.throwIfAborted();
        const { logger } = this.#options.cache;
        logger.warning("a model that the platform had no record of did not unload", { id, error: String(error) });
      }
    });
  }

  async #send(version: { readonly id: string; readonly target: string | null }, closing: AbortSignal): Promise<void> {
    const { clock, limits, container } = this.#options.cache;
    const late = () => new Error("the unload did not end in time");
    using deadline = openDeadline({ clock, afterMs: limits.unloadMsMax, signal: closing, createError: late });
    await (await container(deadline.signal)).unload(version, deadline.signal);
  }
}
