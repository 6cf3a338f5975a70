import { Socket } from "node:net";

/** Why the process should end: a signal, or the end of the process that started it. */
export interface StopSignal extends Disposable {
  readonly stopped: Promise<string>;
}

/** Waits for SIGTERM or SIGINT; with `watchParent` also for the end of the pipe on descriptor 3, whose other end the parent holds. */
export function stopSignal(options: { readonly watchParent: boolean }): StopSignal {
  const { promise, resolve } = Promise.withResolvers<string>();
  const onTerm = () => resolve("SIGTERM");
  const onInt = () => resolve("SIGINT");
  process.on("SIGTERM", onTerm);
  process.on("SIGINT", onInt);
  let lifeline: Socket | null = null;
  if (options.watchParent) {
    lifeline = new Socket({ fd: 3, readable: true, writable: false });
    lifeline.on("error", () => resolve("the starting process ended"));
    lifeline.on("close", () => resolve("the starting process ended"));
    lifeline.resume();
  }
  // Something must keep the process alive between requests even when every listener is a Unix socket someone unlinked.
  const alive = setInterval(() => {}, 2 ** 30);
  return {
    stopped: promise,
    [Symbol.dispose]() {
      clearInterval(alive);
      process.off("SIGTERM", onTerm);
      process.off("SIGINT", onInt);
      lifeline?.destroy();
    },
  };
}
