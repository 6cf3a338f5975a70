/**
 * Builds the complete model repository of pictures in, classes out: DALI's preprocessing before TensorFlow's Inception v3.
 *
 *   node examples/inception/assemble.ts <target directory> <photograph.jpg>...
 *
 * What is in `models/` beside this file, plus what DALI and TensorFlow write in their environments, which `galatea model add` sets up the
 * first time. The photographs give the network its statistics: any few will do.
 */
import { execFile, spawn } from "node:child_process";
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";

export interface InceptionOptions {
  /** Becomes a model repository; made when absent. */
  readonly targetDirectory: string;
  /** JPEG files. */
  readonly photographs: readonly string[];
  /** Interpreters that have DALI and TensorFlow. */
  readonly pythons: { readonly dali: string; readonly tensorflow: string };
}

const run = promisify(execFile);
const beside = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Gives the same network every time. Throws with what DALI or TensorFlow said. */
export async function assembleInception({ targetDirectory, photographs, pythons }: InceptionOptions): Promise<void> {
  await cp(beside("models"), targetDirectory, { recursive: true });
  const version = async (model: string) => {
    const directory = join(targetDirectory, model, "1");
    await mkdir(directory, { recursive: true });
    return directory;
  };
  await version("ensemble_dali_inception");
  const [pipeline, network] = [await version("dali"), await version("inception_graphdef")];
  await run(pythons.dali, [beside("pipeline.py"), join(pipeline, "model.dali")]);
  const labels = join(targetDirectory, "inception_graphdef", "inception_labels.txt");
  await run(pythons.tensorflow, [beside("network.py"), join(network, "model.graphdef"), labels, ...photographs]);
}

/** The interpreter of a framework's environment, which is made the first time. */
async function pythonOf(framework: string): Promise<string> {
  const main = beside("../../server/src/main.ts");
  const child = spawn(process.execPath, [main, "model", "add", framework], { stdio: ["ignore", "pipe", "inherit"] });
  let words = "";
  for await (const chunk of child.stdout) words = (words + String(chunk)).slice(-4096);
  const place = new RegExp(`^${framework} is set up in (.*)$`, "m").exec(words)?.[1];
  if (place === undefined) throw new Error(`galatea model add ${framework} failed`);
  return join(place, "bin", "python");
}

if (import.meta.main) {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [targetDirectory, ...photographs] = positionals;
  if (targetDirectory === undefined || photographs.length === 0) {
    process.stderr.write("usage: node examples/inception/assemble.ts <target directory> <photograph.jpg>...\n");
    process.exitCode = 2;
  } else {
    const pythons = { dali: await pythonOf("dali"), tensorflow: await pythonOf("tensorflow") };
    await assembleInception({ targetDirectory, photographs, pythons });
  }
}
