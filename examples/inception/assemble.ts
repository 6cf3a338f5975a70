/**
 * Builds the complete model repository of pictures in, classes out: DALI's preprocessing before TensorFlow's Inception v3.
 *
 *   node examples/inception/assemble.ts <target directory> <photograph.jpg>...
 *
 * What is in `models/` beside this file, plus what DALI and TensorFlow write in their environments, which `galatea model add` sets up the
 * first time. The photographs give the network its statistics: any few will do.
 */
import { execFile } from "node:child_process";
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { frameworkPython } from "../framework-python.ts";

export interface InceptionOptions {
  /** Becomes a model repository; made when absent. */
  readonly targetDirectory: string;
  /** JPEG files. */
  readonly photographs: readonly string[];
  /** Interpreters that have DALI and TensorFlow. */
  readonly pythons: { readonly dali: string; readonly tensorflow: string };
  readonly signal?: AbortSignal;
}

const run = promisify(execFile);
const beside = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Gives the same network every time. Throws with what DALI or TensorFlow said. */
export async function assembleInception(options: InceptionOptions): Promise<void> {
  const { targetDirectory, photographs, pythons, signal } = options;
  await cp(beside("models"), targetDirectory, { recursive: true });
  const version = async (model: string) => {
    const directory = join(targetDirectory, model, "1");
    await mkdir(directory, { recursive: true });
    return directory;
  };
  await version("ensemble_dali_inception");
  const [pipeline, network] = [await version("dali"), await version("inception_graphdef")];
  await run(pythons.dali, [beside("pipeline.py"), join(pipeline, "model.dali")], { signal });
  const labels = join(targetDirectory, "inception_graphdef", "inception_labels.txt");
  await run(pythons.tensorflow, [beside("network.py"), join(network, "model.graphdef"), labels, ...photographs], {
    signal,
  });
}

if (import.meta.main) {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [targetDirectory, ...photographs] = positionals;
  if (targetDirectory === undefined || photographs.length === 0) {
    process.stderr.write("usage: node examples/inception/assemble.ts <target directory> <photograph.jpg>...\n");
    process.exitCode = 2;
  } else {
    const place = { data: null, detail: (text: string) => void process.stderr.write(`${text}\n`) };
    const pythons = {
      dali: await frameworkPython("dali", place),
      tensorflow: await frameworkPython("tensorflow", place),
    };
    await assembleInception({ targetDirectory, photographs, pythons });
  }
}
