import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ModelSource } from "./model-source.ts";

const programs = fileURLToPath(new URL("models/", import.meta.url));

/** Writes model directories into `directory`. */
export async function writeRepository(directory: string, models: Readonly<Record<string, ModelSource>>): Promise<void> {
  for (const [name, model] of Object.entries(models)) {
    const modelDirectory = join(directory, name);
    await mkdir(modelDirectory, { recursive: true });
    if (model.config !== null) await writeFile(join(modelDirectory, "config.pbtxt"), model.config);
    for (const version of model.versions ?? [1]) {
      await mkdir(join(modelDirectory, String(version)), { recursive: true });
      if (model.program !== null) {
        await copyFile(join(programs, model.program), join(modelDirectory, String(version), "model.py"));
      }
    }
    for (const [path, text] of Object.entries(model.files ?? {})) {
      await mkdir(dirname(join(modelDirectory, path)), { recursive: true });
      await writeFile(join(modelDirectory, path), text);
    }
  }
}
