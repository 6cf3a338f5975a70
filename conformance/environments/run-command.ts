import { spawn } from "node:child_process";

/** How what is made is made: both members have a value that does nothing. */
export interface Making {
  readonly signal: AbortSignal;
  /** Told each command before it runs and each line that it writes. */
  readonly progress: (line: string) => void;
}

export type MakingOptions = Partial<Making>;

const outputBytesMax = 64 * 1024;

/** Runs to the end and gives standard output; another exit code than 0 is an error with the last lines of both streams. */
export async function runCommand(
  command: readonly string[],
  options: Making & { readonly cwd?: string },
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
