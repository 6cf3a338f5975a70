import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../packages/galatea/src/main.ts", import.meta.url));
const keptWords = 64 * 1024;

export interface FrameworkPlaceOptions {
  /** The data directory of the server that will use the framework; null for the default one. */
  readonly data: string | null;
  /** Called with progress texts of one or several lines. */
  readonly detail: (text: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Installs a framework with `galatea model add` and returns its interpreter. The first installation takes up to
 * gigabytes and minutes. Throws with the output of the command.
 */
export async function frameworkPython(name: string, { data, detail, signal }: FrameworkPlaceOptions): Promise<string> {
  const child = spawn(process.execPath, [main, "model", "add", name, ...(data === null ? [] : [`--data=${data}`])], {
    stdio: ["ignore", "pipe", "pipe"],
    // A framework in our own directory must not be registered in the machine's directory.
    env: data === null ? process.env : { ...process.env, GALATEA_FRAMEWORKS: join(data, "frameworks") },
    ...(signal === undefined ? {} : { signal, killSignal: "SIGTERM" as const }),
  });
  let words = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      words = (words + text).slice(-keptWords);
      detail(text.trimEnd());
    });
  const [code] = (await once(child, "close")) as [number | null];
  const location = new RegExp(`^${name} is set up in (.*)$`, "m").exec(words)?.[1];
  if (code !== 0 || location === undefined) throw new Error(`galatea model add ${name} ended with ${code}:\n${words}`);
  return join(location, "bin", "python");
}
