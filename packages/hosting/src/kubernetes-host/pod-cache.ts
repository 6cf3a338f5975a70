import { ChangeNotifier, delay, rejectOnAbort, TaskGroup, type Clock, type Logger } from "@galatea/base";
import type { ClusterApi } from "./cluster-api.ts";
import { instanceLabels, type Pod } from "./pod.ts";

const retryMsMin = 500;
const retryMsMax = 15_000;
/**
 * Milliseconds between the end of a watch and the next list. Without this pause, an API that ends every watch immediately would be called in
 * a busy loop.
 */
const relistMs = 1000;

export interface PodCacheOptions {
  readonly api: ClusterApi;
  readonly selector: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The pods of a platform as the API last reported them. The cache lists the pods and watches for changes; it lists them again when the watch
 * ends or is silent. While the API does not respond, the cache keeps the last known pods.
 */
export class PodCache implements AsyncDisposable {
  readonly #options: PodCacheOptions;
  readonly #tasks: TaskGroup;
  readonly #changed = new ChangeNotifier();
  #pods = new Map<string, Pod>();
  /** Names of pods that were created during a list call. The result of that call may lack these pods. */
  readonly #added = new Set<string>();

  private constructor(options: PodCacheOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) =>
      options.logger.error("bug: the watch of the instances' pods has stopped", { error: String(error) }),
    );
  }

  /** Opens a cache. Resolves after the first list, and retries until the API responds. */
  static async open(options: PodCacheOptions): Promise<PodCache> {
    const cache = new PodCache(options);
    const listed = Promise.withResolvers<void>();
    cache.#tasks.run((closing) => cache.#follow(listed.resolve, closing));
    await listed.promise;
    return cache;
  }

  /** All pods, including ended ones. */
  get all(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  find(name: string): Pod | null {
    return this.#pods.get(name) ?? null;
  }

  ofInstance(id: string): readonly Pod[] {
    return this.all.filter(({ metadata }) => metadata.labels?.[instanceLabels.instance] === id);
  }

  /** Resolves at the next change. Call it before reading the pods; otherwise, a change in between is missed. */
  changed(): Promise<void> {
    return this.#changed.nextChange();
  }

  /** Resolves when a pod satisfies a condition. `isTrue` gets null if the pod does not exist. */
  async until(name: string, isTrue: (pod: Pod | null) => boolean, signal: AbortSignal): Promise<void> {
    for (;;) {
      const changed = this.changed();
      if (isTrue(this.find(name))) return;
      await rejectOnAbort(changed, signal);
    }
  }

  /** Adds a pod that this process has created, before the watch reports it. */
  add(pod: Pod): void {
    const { name } = pod.metadata;
    this.#added.add(name);
    if (!this.#pods.has(name)) this.#pods.set(name, pod);
    this.#changed.notify();
  }

  async #follow(listed: () => void, closing: AbortSignal): Promise<never> {
    const { api, selector, clock, logger } = this.#options;
    let waitMs = retryMsMin;
    let isFailing = false;
    for (;;) {
      try {
        const version = await this.#list();
        listed();
        if (isFailing) logger.info("the Kubernetes API responds again");
        isFailing = false;
        waitMs = retryMsMin;
        await api.watchPods({
          selector,
          version,
          signal: closing,
          onChange: ({ kind, pod }) => {
            if (kind === "DELETED") this.#pods.delete(pod.metadata.name);
            else this.#pods.set(pod.metadata.name, pod);
            this.#changed.notify();
          },
        });
        await delay(clock, relistMs, closing);
      } catch (error) {
        closing.throwIfAborted();
        if (!isSilence(error)) {
          if (!isFailing)
            logger.warning("the Kubernetes API does not respond; instances continue", { error: String(error) });
          isFailing = true;
        }
        await delay(clock, waitMs, closing);
        waitMs = Math.min(retryMsMax, 2 * waitMs);
      }
    }
  }

  async #list(): Promise<string> {
    const { api, selector } = this.#options;
    this.#added.clear();
    const { pods, version } = await api.listPods(selector);
    const found = new Map(pods.map((pod) => [pod.metadata.name, pod]));
    for (const name of this.#added) {
      const pod = this.#pods.get(name);
      if (pod !== undefined && !found.has(name)) found.set(name, pod);
    }
    this.#pods = found;
    this.#changed.notify();
    return version;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }
}

/** The client library ends a watch without events after 30 s. This is normal if no pod changes. */
const isSilence = (error: unknown): boolean => error instanceof DOMException && error.name === "TimeoutError";
