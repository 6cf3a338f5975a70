import { systemClock, type Clock, type Logger } from "@galatea/base";
import { endAfter } from "@galatea/base/system";

/** How much longer than its time this process may be too busy to notice that nobody pings it: as long as its platform would let it be busy. */
const busySecsMax = 600;

export interface PingWatch extends Disposable {
  pinged(): void;
}

/**
 * Watches whether this server's platform is there: calls `onSilent` once when nobody has pinged the server for so long. Where the event loop
 * does not come to that, the kernel ends the process later.
 */
export function watchPings(graceSecs: number, onSilent: () => void, clock: Clock): PingWatch {
  const graceNs = graceSecs * 1e9;
  let pingedNs = clock.monotonicNs();
  let timer: Disposable | null = null;
  const pinged = () => {
    pingedNs = clock.monotonicNs();
    endAfter(graceSecs + busySecsMax);
  };
  const restNs = () => pingedNs + graceNs - clock.monotonicNs();
  const lookLater = (ms: number) => (timer = clock.timer(ms, look));
  // Pings that came while this process was busy are answered before it is judged.
  const look = () => setImmediate(() => (restNs() <= 0 ? onSilent() : lookLater(restNs() / 1e6)));
  pinged();
  lookLater(graceSecs * 1000);
  return {
    pinged,
    [Symbol.dispose]() {
      timer?.[Symbol.dispose]();
      endAfter(0);
    },
  };
}

/** For a server that a platform runs: it ends as by SIGTERM when nobody pings it any more. Null where it is nobody's. */
export function endWithoutPings(graceSecs: number | null, log: Logger): PingWatch | null {
  if (graceSecs === null) return null;
  const end = () => {
    log.warning(`nobody has pinged this server for ${graceSecs} s: its platform is gone`);
    process.kill(process.pid, "SIGTERM");
  };
  return watchPings(graceSecs, end, systemClock);
}
