import { constants } from "node:os";
import type { Clock } from "@galatea/base";
import { readProcessFile } from "@galatea/base/processes";
import { setParentDeathSignal } from "@galatea/base/system";

type Environment = Readonly<Record<string, string | undefined>>;

/** A process, as /proc describes it. */
export interface ParentProcess {
  readonly pid: number;
  readonly parentPid: number;
  /** The command line, which begins with the program's name. */
  readonly command: readonly string[];
}

/**
 * Ends this process when `npx` ends. `npx galatea ...` runs this program in a shell of its own and forwards signals
 * only to that shell. The kernel therefore sends SIGTERM to this process when the shell ends.
 *
 * A killed npx (SIGKILL) forwards nothing, and the kernel reports only the end of a direct parent. This process
 * therefore polls the parent of the shell. A server that was started in another way continues after its parent has
 * ended: in the background of a shell, with nohup, or under an init system. Call this after a listener for SIGTERM was
 * added.
 */
export async function endWithNpx(environment: Environment, parentPid: number, clock: Clock): Promise<void> {
  if (environment["npm_command"] !== "exec") return;
  const parent = await readParent(parentPid);
  if (parent === null || !isShellOfNpx(parent, environment)) return;
  const grandparent = await readParent(parent.parentPid);
  setParentDeathSignal(constants.signals.SIGTERM);
  const end = () => process.kill(process.pid, "SIGTERM");
  // The parent may have ended just before `setParentDeathSignal`, which would then never send the signal.
  if (process.ppid !== parentPid) return void end();
  if (isNpx(parent)) return;
  // npx may have been killed while this program was loading.
  if (grandparent === null || !isNpx(grandparent)) return void end();
  const look = async (): Promise<void> => {
    if ((await readParent(parentPid))?.parentPid !== parent.parentPid) return void end();
    clock.timer(pollMs, () => void look());
  };
  clock.timer(pollMs, () => void look());
}

const pollMs = 2000;

/**
 * Returns whether the parent is npx or its shell, which continues after npx has ended. npm's environment variables
 * alone do not show this, because all descendants of npx inherit them.
 */
export function isShellOfNpx(parent: ParentProcess, environment: Environment): boolean {
  if (isNpx(parent)) return true;
  const { npm_lifecycle_event: event, npm_lifecycle_script: script = "" } = environment;
  const [, option, words = ""] = parent.command;
  return event === "npx" && script !== "" && option === "-c" && words.startsWith(script);
}

/**
 * Returns whether a process is npx. npm renames its process to "npm exec <program>"; before that, the path of the
 * program file identifies it.
 */
function isNpx({ command }: ParentProcess): boolean {
  const [program = "", script = ""] = command;
  return /^(npm exec|npx)( |$)/.test(program) || /\/npx(-cli\.js)?$/.test(script);
}

async function readParent(pid: number): Promise<ParentProcess | null> {
  const [stat, command] = await Promise.all([readProcessFile(pid, "stat"), readProcessFile(pid, "cmdline")]);
  if (stat === null || command === null) return null;
  // State and parent follow the name in parentheses, which may itself contain parentheses.
  const [, parentPid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { pid, parentPid: Number(parentPid), command: command.split("\0") };
}
