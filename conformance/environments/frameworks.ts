import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheDirectory } from "./cache-directory.ts";

const main = fileURLToPath(new URL("../../server/src/main.ts", import.meta.url));

/** The frameworks that suites run models in. */
export const frameworkNames = ["pytorch", "dali", "tensorflow", "sklearn"] as const;
export type FrameworkName = (typeof frameworkNames)[number];

/**
 * Sets a framework up where `startGalatea` finds it, by the product's own command; gives its interpreter. Gigabytes and minutes the
 * first time, nothing later. Throws with what the command said.
 */
export async function ensureFramework(name: FrameworkName, progress: (line: string) => void = () => {}) {
  const data = join(cacheDirectory(process.env), "server-data");
  const child = spawn(process.execPath, [main, "model", "add", name, `--data=${data}`], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let words = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      words = (words + text).slice(-65536);
      progress(text.trimEnd());
    });
  const code = await new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  const place = new RegExp(`^${name} is set up in (.*)$`, "m").exec(words)?.[1];
  if (code !== 0 || place === undefined) throw new Error(`galatea model add ${name} ended with ${code}:\n${words}`);
  return { python: join(place, "bin", "python") };
}
