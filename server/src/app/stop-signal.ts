/** Waits for SIGTERM or SIGINT, and keeps the process alive until then. */
export interface StopSignal extends Disposable {
  /** The name of the signal. */
  readonly stopped: Promise<string>;
}

export function stopSignal(): StopSignal {
  const { promise, resolve } = Promise.withResolvers<string>();
  const onTerm = () => resolve("SIGTERM");
  const onInt = () => resolve("SIGINT");
  process.on("SIGTERM", onTerm);
  process.on("SIGINT", onInt);
  const alive = setInterval(() => {}, 2 ** 30);
  return {
    stopped: promise,
    [Symbol.dispose]() {
      clearInterval(alive);
      process.off("SIGTERM", onTerm);
      process.off("SIGINT", onInt);
    },
  };
}
