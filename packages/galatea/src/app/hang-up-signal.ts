import { closeSync, openSync } from "node:fs";
import { isatty } from "node:tty";

/**
 * Runs `reload` at each SIGHUP until disposed, never concurrently; several signals during a run cause one more run.
 * `reload` must handle its errors.
 *
 * If SIGHUP means that this process's terminal was closed, the process ends as after SIGTERM. Otherwise an invisible
 * server would keep its ports and its memory. A server that was started with nohup continues.
 */
export function onHangUp(reload: () => Promise<void>): Disposable {
  // nohup makes a process ignore SIGHUP, but Node resets that. With nohup, none of these descriptors is a terminal.
  const endsWithTerminal = [0, 1, 2].some((fd) => isatty(fd)) && hasTerminal();
  let running: Promise<void> | null = null;
  let isDue = false;
  const run = async () => {
    while (isDue) {
      isDue = false;
      await reload();
    }
    running = null;
  };
  const listen = () => {
    if (endsWithTerminal && !hasTerminal()) {
      process.kill(process.pid, "SIGTERM");
      return;
    }
    isDue = true;
    running ??= run();
  };
  process.on("SIGHUP", listen);
  return { [Symbol.dispose]: () => void process.off("SIGHUP", listen) };
}

/**
 * Returns whether this process has a controlling terminal. When a terminal is closed, the kernel removes it from the
 * process before it sends SIGHUP.
 */
function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
