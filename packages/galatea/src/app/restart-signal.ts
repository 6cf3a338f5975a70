import type { constants } from "node:os";
import { keepFromChildren } from "@galatea/base/system";

/** What `galatea restart` sends to a platform: Node keeps SIGUSR1 for its debugger. */
export const restartSignal = "SIGUSR2" satisfies keyof typeof constants.signals;

/** Names the descriptor of a listening socket in the environment of the program that replaces a platform. */
const socketVariable = "GALATEA_LISTENING_FD";

export interface RestartSignal extends Disposable {
  /** Resolves at the first signal; never rejects. */
  readonly asked: Promise<"restart">;
}

export function onRestart(): RestartSignal {
  const { promise: asked, resolve } = Promise.withResolvers<"restart">();
  const listen = () => resolve("restart");
  process.on(restartSignal, listen);
  return { asked, [Symbol.dispose]: () => void process.off(restartSignal, listen) };
}

/** The listening socket that the platform before this one left open; null where this one was started anew. Told once. */
export function takeListeningSocket(): number | null {
  const told = process.env[socketVariable];
  delete process.env[socketVariable];
  if (told === undefined) return null;
  const fd = Number(told);
  keepFromChildren(fd);
  return fd;
}

/** Replaces this program by what stands in its files now, with the same arguments and process id. */
export function startAnew(listeningFd: number): never {
  const [node, script, ...args] = process.argv;
  const env = { ...process.env, [socketVariable]: String(listeningFd) };
  // Typed as optional for systems that have no exec; this one has.
  process.execve?.(process.execPath, [node, ...process.execArgv, script, ...args] as string[], env);
  throw new Error("the program could not be started anew");
}
