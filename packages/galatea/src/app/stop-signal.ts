import { systemClock, type Clock } from "@galatea/base";

const names = ["SIGTERM", "SIGINT"] as const;
export type StopName = (typeof names)[number];

/**
 * Signals within this time count as one: a terminal sends Ctrl-C to every process of its foreground group, and npm
 * passes it on to a child that has already got it.
 */
const sameStopMs = 300;

/** Waits for SIGTERM or SIGINT, and keeps the process alive until it is disposed of. */
export interface StopSignal extends Disposable {
  /** Resolves with the name of the first signal. */
  readonly stopped: Promise<StopName>;
  /**
   * Resolves with the name of a second signal, after `sameStopMs`: its sender does not want to wait for the shutdown.
   */
  readonly insisted: Promise<StopName>;
}

export function stopSignal(clock: Clock = systemClock): StopSignal {
  const first = Promise.withResolvers<StopName>();
  const further = Promise.withResolvers<StopName>();
  let firstNs: number | null = null;
  const listeners = names.map((name) => ({
    name,
    listen: () => {
      const nowNs = clock.monotonicNs();
      if (firstNs === null) {
        firstNs = nowNs;
        first.resolve(name);
      } else if (nowNs - firstNs > sameStopMs * 1e6) further.resolve(name);
    },
  }));
  for (const { name, listen } of listeners) process.on(name, listen);
  const alive = setInterval(() => {}, 2 ** 30);
  return {
    stopped: first.promise,
    insisted: further.promise,
    [Symbol.dispose]() {
      clearInterval(alive);
      for (const { name, listen } of listeners) process.off(name, listen);
    },
  };
}

/**
 * Ends this process by the signal's default action, so that its parent sees the reason. Unlike an exit, it closes
 * nothing and does not wait for a blocked file system.
 */
export function endBySignal(stop: StopSignal, name: StopName): never {
  stop[Symbol.dispose]();
  process.kill(process.pid, name);
  // The kernel ignores signals without a listener for the first process of a container.
  process.exit(name === "SIGINT" ? 130 : 143);
}
