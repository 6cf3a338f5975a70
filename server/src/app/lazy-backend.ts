import type { Backend } from "../backends/index.ts";

/** A backend whose code is imported when a model first needs it: a server without Python models never pays for Python. */
export function lazyBackend(
  name: string,
  open: () => Promise<Backend>,
  mayWarmUp: () => Promise<boolean> = () => Promise.resolve(false),
): Backend {
  let opened: Promise<Backend> | null = null;
  let isClosed = false;
  const backend = () => (opened ??= open());
  return {
    name,
    complete: async (source, config, context) => (await backend()).complete(source, config, context),
    estimateBytes: async (source, config) => (await backend()).estimateBytes(source, config),
    load: async (source, config, context) => (await backend()).load(source, config, context),
    warmUp: async () => {
      if ((await mayWarmUp()) && !isClosed) await (await backend()).warmUp();
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      await (await opened)?.[Symbol.asyncDispose]();
    },
  };
}
