import { closeSync, openSync } from "node:fs";
import { isatty } from "node:tty";

/**
 * Runs `reload` at each SIGHUP until disposed, one after another: signals that arrive meanwhile are one more run. `reload` handles its own errors.
 * Where the terminal that this process reads or writes was closed, the process ends as by SIGTERM: a server that its user cannot
 * see any more would keep its ports and its memory. One that nohup started goes on.
 */
export function onHangUp(reload: () => Promise<void>): Disposable {
  // Node undoes that nohup has SIGHUP ignored; what stays is that nohup leaves none of these at the terminal.
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

/** Returns whether this process has a controlling terminal: the kernel takes it away before it sends SIGHUP for it. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
