import { systemClock, type Clock } from "@galatea/base";

const names = ["SIGTERM", "SIGINT"] as const;
export type StopName = (typeof names)[number];

/**
 * Time within which further signals count as the first one, in milliseconds. On Ctrl-C, a terminal signals every
 * process of its foreground group, and npm also forwards the signal to its child.
 */
const sameStopMs = 300;

/** A listener for SIGTERM and SIGINT. Keeps the process alive until disposed. */
export interface StopSignal extends Disposable {
  /** Resolves with the name of the first stop signal. */
  readonly stopped: Promise<StopName>;
  /**
   * Resolves with the name of a second stop signal, which arrived at least `sameStopMs` after the first. The caller
   * should then end the process at once.
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
 * Ends this process by the signal's default action, so that its parent sees the reason. Unlike an exit, this does not
 * close anything and does not wait for a blocked file system.
 */
export function endBySignal(stop: StopSignal, name: StopName): never {
  stop[Symbol.dispose]();
  process.kill(process.pid, name);
  // The kernel ignores signals without a listener for the first process of a container, so this process exits itself.
  process.exit(name === "SIGINT" ? 130 : 143);
}
