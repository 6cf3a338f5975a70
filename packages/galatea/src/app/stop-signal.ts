import { systemClock, type Clock } from "@galatea/base";

const names = ["SIGTERM", "SIGINT"] as const;
export type StopName = (typeof names)[number];

/**
 * Signals this close together are one: a terminal gives Ctrl-C to every process of its foreground group, and npm and the like pass on
 * what they got to a child that has it already.
 */
const sameStopMs = 300;

/** Waits for SIGTERM or SIGINT, and keeps the process alive until it is disposed of. */
export interface StopSignal extends Disposable {
  /** The name of the first signal. */
  readonly stopped: Promise<StopName>;
  /** The name of a further one, later than `sameStopMs`: whoever sends it does not want to wait for what the first began. */
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
 * Ends this process by the signal, as if nobody had waited for it: what started it learns the reason. Nothing is closed, and nothing
 * that is stuck in the file system is waited for, which an exit would do.
 */
export function endBySignal(stop: StopSignal, name: StopName): never {
  stop[Symbol.dispose]();
  process.kill(process.pid, name);
  // The first process of a container is spared signals that it has no listener for.
  process.exit(name === "SIGINT" ? 130 : 143);
}
