import { constants } from "node:os";
import type { Clock } from "@galatea/base";
import { readProcessFile } from "@galatea/base/processes";
import { signalAtParentsEnd } from "@galatea/base/system";

type Environment = Readonly<Record<string, string | undefined>>;

/** A process as /proc tells of it. */
export interface ParentProcess {
  readonly pid: number;
  readonly parentPid: number;
  /** Its words, the program's name first. */
  readonly command: readonly string[];
}

/**
 * `npx galatea ...` runs this program below a shell of its own, and whoever ends npx means the server. npx passes a signal on to the
 * shell only; so the kernel is asked to send SIGTERM when that shell has gone. An npx that was killed (SIGKILL) passes nothing on, and no
 * kernel tells a grandchild: the shell's parent is looked at now and then. A server that was started any other way goes on when
 * its parent ends: in the background of a shell, by nohup, by an init. To be called when somebody listens for SIGTERM.
 */
export async function endWithNpx(environment: Environment, parentPid: number, clock: Clock): Promise<void> {
  if (environment["npm_command"] !== "exec") return;
  const parent = await readParent(parentPid);
  if (parent === null || !isShellOfNpx(parent, await readParent(parent.parentPid))) return;
  signalAtParentsEnd(constants.signals.SIGTERM);
  const end = () => process.kill(process.pid, "SIGTERM");
  // It may have gone just before the kernel was asked.
  if (process.ppid !== parentPid) return void end();
  if (isNpx(parent)) return;
  const look = async (): Promise<void> => {
    if ((await readParent(parentPid))?.parentPid !== parent.parentPid) return void end();
    clock.timer(lookMs, () => void look());
  };
  clock.timer(lookMs, () => void look());
}

const lookMs = 2000;

/**
 * Returns whether the parent is what npx runs a program with. The environment alone does not tell: everything below npx
 * inherits it.
 */
export function isShellOfNpx(parent: ParentProcess, grandparent: ParentProcess | null): boolean {
  if (isNpx(parent)) return true;
  return parent.command[1] === "-c" && grandparent !== null && isNpx(grandparent);
}

/** npm calls its process "npm exec <what it runs>"; before it does, the program file tells. */
function isNpx({ command }: ParentProcess): boolean {
  const [program = "", script = ""] = command;
  return /^(npm exec|npx)( |$)/.test(program) || /\/npx(-cli\.js)?$/.test(script);
}

async function readParent(pid: number): Promise<ParentProcess | null> {
  const [stat, command] = await Promise.all([readProcessFile(pid, "stat"), readProcessFile(pid, "cmdline")]);
  if (stat === null || command === null) return null;
  // State and parent follow the name in parentheses, which may hold anything.
  const [, parentPid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { pid, parentPid: Number(parentPid), command: command.split("\0") };
}
