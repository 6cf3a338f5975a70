import { InferenceError } from "@galatea/base";
import type { Backend } from "@galatea/server/backends";

export interface LazyBackendOptions extends Pick<Backend, "name" | "runs" | "check"> {
  readonly open: (signal: AbortSignal) => Promise<Backend>;
  /** Returns whether a warm-up may open the backend; absent: it may not. */
  readonly mayWarmUp?: () => Promise<boolean>;
}

/**
 * Returns a backend whose code is imported when its first model is loaded, so that a server without Python models does
 * not load Python. `runs` and `check` do not import it.
 */
export function lazyBackend({ open, mayWarmUp, ...known }: LazyBackendOptions): Backend {
  let opened: Promise<Backend> | null = null;
  const closing = new AbortController();
  const backend = () => {
    closing.signal.throwIfAborted();
    return (opened ??= open(closing.signal));
  };
  return {
    ...known,
    complete: async (source, config, context) => (await backend()).complete(source, config, context),
    estimateBytes: async (source, config) => (await backend()).estimateBytes(source, config),
    heldBytes: async (source, config) => (await (await backend()).heldBytes?.(source, config)) ?? 0,
    load: async (source, config, context) => (await backend()).load(source, config, context),
    warmUp: async () => {
      if ((await mayWarmUp?.()) === true && !closing.signal.aborted) await (await backend()).warmUp();
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new InferenceError("UNAVAILABLE", "Server exiting"));
      // A backend that failed to open needs no closing, and its failure was already reported.
      const backendOrNull = await opened?.catch(() => null);
      await backendOrNull?.[Symbol.asyncDispose]();
    },
  };
}
