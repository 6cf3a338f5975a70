import type { constants } from "node:os";
import { setCloseOnExec } from "@galatea/base/system";

/** The signal that `galatea restart` sends. SIGUSR1 cannot be used, because it starts Node's debugger. */
export const restartSignal = "SIGUSR2" satisfies keyof typeof constants.signals;

/** The variable with the descriptor of the listening socket, for the program that replaces this process. */
const socketVariable = "GALATEA_LISTENING_FD";

export interface RestartSignal extends Disposable {
  /** Resolves at the first restart signal. Never rejects. */
  readonly requested: Promise<"restart">;
}

/** Listens for the restart signal until disposal. */
export function onRestart(): RestartSignal {
  const { promise: requested, resolve } = Promise.withResolvers<"restart">();
  const listen = () => resolve("restart");
  process.on(restartSignal, listen);
  return { requested, [Symbol.dispose]: () => void process.off(restartSignal, listen) };
}

/**
 * Returns the descriptor of the listening socket that the replaced process left open; null after a normal start.
 * Deletes the variable, so a second call returns null.
 */
export function takeListeningSocket(): number | null {
  const text = process.env[socketVariable];
  delete process.env[socketVariable];
  if (text === undefined) return null;
  const fd = Number(text);
  setCloseOnExec(fd);
  return fd;
}

/** Replaces this process with the installed program (exec). The arguments and the process id stay the same. */
export function replaceProcess(listeningFd: number): never {
  const [node, script, ...args] = process.argv;
  const env = { ...process.env, [socketVariable]: String(listeningFd) };
  // `execve` is optional in Node's types because Windows does not have it.
  process.execve?.(process.execPath, [node, ...process.execArgv, script, ...args] as string[], env);
  throw new Error("the program could not be restarted");
}
