import { spawn } from "node:child_process";

/** Options of a creation. */
export interface Installation {
  readonly signal: AbortSignal;
  /** Called with each command before it runs, and with each line of its output. */
  readonly progress: (line: string) => void;
}

export type InstallationOptions = Partial<Installation>;

const outputBytesMax = 64 * 1024;

/**
 * Runs a command and resolves with its standard output. Rejects with the last lines of both streams for an exit code
 * other than 0.
 */
export async function runCommand(
  command: readonly string[],
  options: Installation & { readonly cwd?: string },
): Promise<string> {
  options.progress(`$ ${command.join(" ").slice(0, 200)}`);
  const child = spawn(command[0] ?? "", command.slice(1), {
    cwd: options.cwd,
    stdio: ["ignore", "pipe", "pipe"],
    signal: options.signal,
  });
  let output = "";
  let everything = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-outputBytesMax);
    everything = (everything + text).slice(-outputBytesMax);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    everything = (everything + text).slice(-outputBytesMax);
    options.progress(text.trimEnd());
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject).on("close", resolve);
  });
  if (code !== 0) throw new Error(`'${command.join(" ")}' ended with ${code}:\n${everything.slice(-4000)}`);
  return output;
}
