import { systemClock, type Clock, type Logger } from "@galatea/base";
import { setProcessAlarm } from "@galatea/base/system";

/**
 * Time after the grace period at which the kernel ends a process whose event loop is blocked, in seconds. The platform
 * tolerates a busy container for the same time.
 */
const busySecsMax = 600;

/**
 * Time after the grace period at which the kernel ends a process that is still loading models, in seconds. Equals the
 * maximum of ContainerStartupHealthCheckTimeoutInSeconds.
 */
const loadSecsMax = 3600;

export interface PingWatch extends Disposable {
  /** Starts the grace period. Call this when the listeners are open, because no ping can arrive before. */
  opened(): void;
  pinged(): void;
}

/**
 * Calls `onSilent` once when the server has received no ping for `graceSecs`, because its platform has then ended. If
 * the event loop is blocked, a kernel timer ends the process `busySecsMax` later.
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
  // `setImmediate` lets pings that arrived while the event loop was blocked be handled before the check.
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

/**
 * Makes a platform's server send itself SIGTERM when it receives no more pings. Returns null for a server without
 * `--end-without-pings-secs`.
 */
export function exitWithoutPings(graceSecs: number | null, log: Logger): PingWatch | null {
  if (graceSecs === null) return null;
  const end = () => {
    log.warning(`no ping has arrived for ${graceSecs} s: the platform has ended`);
    process.kill(process.pid, "SIGTERM");
  };
  return watchPings(graceSecs, end, systemClock);
}
