import { systemClock, type Clock, type Logger } from "@galatea/base";
import { setProcessAlarm } from "@galatea/base/system";

/** Time after the grace at which the kernel ends a process whose event loop is blocked: as long as the platform tolerates a busy container. */
const busySecsMax = 600;

/** Time after the grace at which the kernel ends a process that still loads its models: the longest ContainerStartupHealthCheckTimeoutInSeconds. */
const loadSecsMax = 3600;

export interface PingWatch extends Disposable {
  /** Starts the grace: the listeners are open. Before, no ping can arrive. */
  opened(): void;
  pinged(): void;
}

/**
 * Calls `onSilent` once when an open server got no ping for `graceSecs`: its platform is gone. If the event loop is blocked, a kernel timer ends
 * the process `busySecsMax` later.
 */
export function watchPings(graceSecs: number, onSilent: () => void, clock: Clock): PingWatch {
  const graceNs = graceSecs * 1e9;
  let pingedNs = 0;
  let timer: Disposable | null = null;
  const pinged = () => {
    pingedNs = clock.monotonicNs();
    setProcessAlarm(graceSecs + busySecsMax);
  };
  const leftNs = () => pingedNs + graceNs - clock.monotonicNs();
  const checkLater = (ms: number) => (timer = clock.timer(ms, check));
  // Without `setImmediate`, pings that arrived while the event loop was blocked would not count.
  const check = () => setImmediate(() => (leftNs() <= 0 ? onSilent() : checkLater(leftNs() / 1e6)));
  setProcessAlarm(graceSecs + loadSecsMax);
  return {
    opened() {
      pinged();
      checkLater(graceSecs * 1000);
    },
    pinged,
    [Symbol.dispose]() {
      timer?.[Symbol.dispose]();
      setProcessAlarm(0);
    },
  };
}

/** Makes a platform's server send itself SIGTERM when it gets no pings any more. Returns null for a server without `--end-without-pings-secs`. */
export function exitWithoutPings(graceSecs: number | null, log: Logger): PingWatch | null {
  if (graceSecs === null) return null;
  const end = () => {
    log.warning(`no ping has arrived for ${graceSecs} s: the platform has ended`);
    process.kill(process.pid, "SIGTERM");
  };
  return watchPings(graceSecs, end, systemClock);
}
