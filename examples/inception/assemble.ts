/**
 * Builds a complete model repository that classifies photographs: DALI's preprocessing, then TensorFlow's Inception v3.
 */
import { execFile } from "node:child_process";
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { frameworkPython } from "../framework-python.ts";

export interface InceptionOptions {
  /** The directory of the model repository; created if it does not exist. */
  readonly targetDirectory: string;
  /** JPEG files. */
  readonly photographs: readonly string[];
  /** Interpreters with DALI and with TensorFlow. */
  readonly pythons: { readonly dali: string; readonly tensorflow: string };
  readonly signal?: AbortSignal;
}

const run = promisify(execFile);
const beside = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Writes the repository; the network is always the same. Throws with the output of DALI or TensorFlow. */
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
    const location = { data: null, detail: (text: string) => void process.stderr.write(`${text}\n`) };
    const pythons = {
      dali: await frameworkPython("dali", location),
      tensorflow: await frameworkPython("tensorflow", location),
    };
    await assembleInception({ targetDirectory, photographs, pythons });
  }
}
