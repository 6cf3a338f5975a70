import { delay, openDeadline, type TaskGroup } from "@galatea/base";
import type { ModelCacheOptions } from "./model-cache-options.ts";
import type { ModelMemory, ModelVersion } from "./model-version.ts";

export interface ModelUnloadsOptions {
  readonly cache: Pick<ModelCacheOptions, "limits" | "container" | "observer" | "clock" | "logger">;
  /** The task group of the cache, which closes it. */
  readonly tasks: TaskGroup;
  readonly moved: (version: ModelVersion, memory: ModelMemory) => void;
  readonly over: (version: ModelVersion) => void;
}

/** Models on their way out of a container's memory, each asked for until the container says that it is gone. */
export class ModelUnloads {
  readonly #options: ModelUnloadsOptions;

  constructor(options: ModelUnloadsOptions) {
    this.#options = options;
  }

  /** Resolves when a loaded model is gone, at once for one that is not there; many may wait for one. */
  unload(version: ModelVersion): Promise<void> {
    if (version.memory !== "loaded") return version.unload ?? Promise.resolve();
    const { moved, over } = this.#options;
    const { clock, limits, observer, logger } = this.#options.cache;
    moved(version, "unloading");
    const { promise, resolve } = Promise.withResolvers<void>();
    version.unload = promise;
    this.#options.tasks.run(async (closing) => {
      const startNs = clock.monotonicNs();
      try {
        // Its memory counts until the container says that it is gone: a container that was started anew says so, too.
        for (let isGone = false; !isGone;) {
          try {
            await this.#ask(version, closing);
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
        moved(version, "absent");
        resolve();
        over(version);
      }
    });
    return promise;
  }

  /** Begins to unload a model of which only its container knows, once. */
  unloadUnknown(id: string): void {
    this.#options.tasks.run(async (closing) => {
      try {
        await this.#ask({ id, target: null }, closing);
      } catch (error) {
        closing.throwIfAborted();
        const { logger } = this.#options.cache;
        logger.warning("a model that only its container knew did not unload", { id, error: String(error) });
      }
    });
  }

  async #ask(version: { readonly id: string; readonly target: string | null }, closing: AbortSignal): Promise<void> {
    const { clock, limits, container } = this.#options.cache;
    const late = () => new Error("the unload did not end in time");
    using deadline = openDeadline({ clock, afterMs: limits.unloadMsMax, signal: closing, late });
    await (await container(deadline.signal)).unload(version, deadline.signal);
  }
}
