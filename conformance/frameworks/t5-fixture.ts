import { execFile } from "node:child_process";
import { cp, link } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensurePackedEnvironment } from "../environments/index.ts";

const run = promisify(execFile);
const example = (name: string) => fileURLToPath(new URL(`../../examples/t5/${name}`, import.meta.url));
/** T5-small has six layers; two are enough to test how it is served. */
const layers = "2";

export const translateScript = example("translate.py");

/** Runs the steps of examples/t5/README.md before the endpoint. The packed environment is kept for the next run. */
export async function assembleT5(repository: string): Promise<void> {
  const { archive, python } = await ensurePackedEnvironment();
  await cp(example("models"), repository, { recursive: true });
  await link(archive, join(repository, "t5", "hf_env.tar.gz")).catch(() =>
    cp(archive, join(repository, "t5", "hf_env.tar.gz")),
  );
  await run(python, [example("make_model.py"), join(repository, "t5"), "--layers", layers]);
}

export interface ReferenceResponse {
  readonly tokens: readonly number[];
  readonly answer: readonly number[];
  /** The smallest difference between the scores of the best and the second best token. */
  readonly margin: number;
}

export async function referenceResponses(sentences: readonly string[]): Promise<readonly ReferenceResponse[]> {
  const { python } = await ensurePackedEnvironment();
  const { stdout } = await run(python, [example("reference.py"), layers, ...sentences]);
  return JSON.parse(stdout) as ReferenceResponse[];
}
