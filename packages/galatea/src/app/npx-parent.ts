import { constants } from "node:os";
import type { Clock } from "@galatea/base";
import { readProcessFile } from "@galatea/base/processes";
import { setParentDeathSignal } from "@galatea/base/system";

type Environment = Readonly<Record<string, string | undefined>>;

/** A process, read from /proc. */
export interface ParentProcess {
  readonly pid: number;
  readonly parentPid: number;
  /** The command line, beginning with the program's name. */
  readonly command: readonly string[];
}

/**
 * Ends this process with `npx`. `npx galatea ...` runs this program below its own shell, and passes signals on to
 * the shell only; so the kernel is asked to send SIGTERM when that shell ends. A killed npx (SIGKILL) passes nothing
 * on, and the kernel reports only a parent's end: the shell's parent is polled. A server that was started in another
 * way continues after its parent's end: in a shell's background, with nohup, under an init. Call it after SIGTERM has a
 * listener.
 */
export async function endWithNpx(environment: Environment, parentPid: number, clock: Clock): Promise<void> {
  if (environment["npm_command"] !== "exec") return;
  const parent = await readParent(parentPid);
  if (parent === null || !isShellOfNpx(parent, environment)) return;
  const grandparent = await readParent(parent.parentPid);
  setParentDeathSignal(constants.signals.SIGTERM);
  const end = () => process.kill(process.pid, "SIGTERM");
  // The parent may have ended just before the request to the kernel.
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

/** Returns whether the parent is npx or its shell, which runs npm's script even after npx has ended. All descendants of npx inherit the variables. */
export function isShellOfNpx(parent: ParentProcess, environment: Environment): boolean {
  if (isNpx(parent)) return true;
  const { npm_lifecycle_event: event, npm_lifecycle_script: script = "" } = environment;
  const [, option, words = ""] = parent.command;
  return event === "npx" && script !== "" && option === "-c" && words.startsWith(script);
}

/** npm renames its process to "npm exec <program>"; before that, the program file identifies it. */
function isNpx({ command }: ParentProcess): boolean {
  const [program = "", script = ""] = command;
  return /^(npm exec|npx)( |$)/.test(program) || /\/npx(-cli\.js)?$/.test(script);
}

async function readParent(pid: number): Promise<ParentProcess | null> {
  const [stat, command] = await Promise.all([readProcessFile(pid, "stat"), readProcessFile(pid, "cmdline")]);
  if (stat === null || command === null) return null;
  // State and parent follow the name in parentheses, which may contain any characters.
  const [, parentPid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { pid, parentPid: Number(parentPid), command: command.split("\0") };
}
