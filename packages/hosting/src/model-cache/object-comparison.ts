import { AwsError, openDeadline, rejectOnAbort, type Clock, type Logger, type TaskGroup } from "@galatea/base";
import type { UnpackedModels } from "./model-trees.ts";
import type { ModelVersion } from "./model-version.ts";

export interface ObjectComparisonOptions {
  readonly trees: Pick<UnpackedModels, "find" | "headAgeMsMax">;
  /** Returns the version of a target that new requests use. */
  readonly currentVersion: (target: string) => ModelVersion | undefined;
  readonly tasks: TaskGroup;
  readonly clock: Clock;
  readonly logger: Logger;
}

type OnReplaced = (version: ModelVersion) => void;

/** Maximum milliseconds that a request waits for a comparison. */
const waitMsMax = 1000;

/** Compares models with their objects in the store, because an object may be replaced or deleted at any time. */
export class ObjectComparison {
  readonly #options: ObjectComparisonOptions;
  /** True after a comparison failed or timed out. Requests then do not wait for the next comparison. */
  #isStoreAway = false;

  constructor(options: ObjectComparisonOptions) {
    this.#options = options;
  }

  /** Calls `onReplaced` if the ETag of a target's object differs from the current version. Logs errors of the store. */
  async compare(target: string, signal: AbortSignal, onReplaced: OnReplaced): Promise<void> {
    const { trees, currentVersion, logger } = this.#options;
    try {
      const found = await trees.find(target, signal);
      this.#isStoreAway = false;
      const version = currentVersion(target);
      if (version !== undefined && version.etag !== found?.etag) onReplaced(version);
    } catch (error) {
      if (!(error instanceof AwsError)) throw error;
      if (!this.#isStoreAway) {
        const text = "a model could not be compared with its object; the known version is used";
        logger.warning(text, { target, error: String(error) });
      }
      this.#isStoreAway = true;
    }
  }

  /**
   * Compares a version with its object if the last comparison is older than `headAgeMsMax`. Requests that arrive during
   * the comparison do not wait for it. While the object store does not respond, no request waits.
   */
  async compareOnceInAge(version: ModelVersion, signal: AbortSignal, onReplaced: OnReplaced): Promise<void> {
    const { clock, tasks, trees } = this.#options;
    const startedNs = clock.monotonicNs();
    if (startedNs - version.checkedNs < trees.headAgeMsMax * 1e6) return;
    version.checkedNs = startedNs;
    const wasAway = this.#isStoreAway;
    const { promise, resolve } = Promise.withResolvers<void>();
    tasks.run((closing) => this.compare(version.target, closing, onReplaced).finally(resolve));
    if (wasAway) return;
    const createError = () => new Error("the object store does not respond");
    using deadline = openDeadline({ clock, afterMs: waitMsMax, signal, createError });
    try {
      await rejectOnAbort(promise, deadline.signal);
    } catch (error) {
      if (!deadline.hasExpired) throw error;
      this.#isStoreAway = true;
    }
  }
}
