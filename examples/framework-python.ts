import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../packages/galatea/src/main.ts", import.meta.url));
const keptWords = 64 * 1024;

export interface FrameworkPlaceOptions {
  /** The data directory of the server that is to find it; null for the default one. */
  readonly data: string | null;
  /** Told what happens, a line or several at a time. */
  readonly detail: (text: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Sets a framework up by `galatea model add`; gives the interpreter that has it. Up to gigabytes and minutes the first time, nothing
 * later. Throws with what the command said.
 */
export async function frameworkPython(name: string, { data, detail, signal }: FrameworkPlaceOptions): Promise<string> {
  const child = spawn(process.execPath, [main, "model", "add", name, ...(data === null ? [] : [`--data=${data}`])], {
    stdio: ["ignore", "pipe", "pipe"],
    // What is made below a directory of ours is not linked to from the machine's.
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
  const place = new RegExp(`^${name} is set up in (.*)$`, "m").exec(words)?.[1];
  if (code !== 0 || place === undefined) throw new Error(`galatea model add ${name} ended with ${code}:\n${words}`);
  return join(place, "bin", "python");
}
