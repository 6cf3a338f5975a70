import { closeSync, openSync } from "node:fs";
import { isatty } from "node:tty";

/**
 * Runs `reload` at each SIGHUP until disposed, one run after another: signals during a run cause one more. `reload`
 * handles its own errors. If the terminal of this process was closed, the process ends as after SIGTERM: otherwise an
 * invisible server would keep its ports and its memory. A server started with nohup continues.
 */
export function onHangUp(reload: () => Promise<void>): Disposable {
  // Node resets nohup's ignored SIGHUP; but with nohup none of these descriptors is a terminal.
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

/** Returns whether this process has a controlling terminal: the kernel removes it before it sends SIGHUP for it. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
