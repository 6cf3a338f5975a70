import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, link, mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory } from "../environments/index.ts";
import { acquireLock } from "../environments/lock.ts";

const run = promisify(execFile);
const example = (name: string) => fileURLToPath(new URL(`../../examples/t5/${name}`, import.meta.url));
/** T5-small has six; two say as much about how it is served. */
const layers = "2";

export const translateScript = example("translate.py");

/** What examples/t5/README.md says up to the endpoint, with the packed environment kept for the next run. */
export async function assembleT5(repository: string): Promise<void> {
  const { archive, python } = await packedEnvironment();
  await cp(example("models"), repository, { recursive: true });
  await link(archive, join(repository, "t5", "hf_env.tar.gz")).catch(() =>
    cp(archive, join(repository, "t5", "hf_env.tar.gz")),
  );
  await run(python, [example("make_model.py"), join(repository, "t5"), "--layers", layers]);
}

export interface ReferenceAnswer {
  readonly tokens: readonly number[];
  readonly answer: readonly number[];
  /** By how much the best token was ahead of the next, where it was least. */
  readonly margin: number;
}

export async function referenceAnswers(sentences: readonly string[]): Promise<readonly ReferenceAnswer[]> {
  const { python } = await packedEnvironment();
  const { stdout } = await run(python, [example("reference.py"), layers, ...sentences]);
  return JSON.parse(stdout) as ReferenceAnswer[];
}

/** Made once by the example's script, for each version of the script and its requirements. */
async function packedEnvironment(): Promise<{ readonly archive: string; readonly python: string }> {
  const files = await Promise.all(["create_hf_env.sh", "requirements.txt"].map((name) => readFile(example(name))));
  const key = createHash("sha256").update(Buffer.concat(files)).digest("hex").slice(0, 12);
  const parent = join(cacheDirectory(process.env), "environments", `t5-${key}`);
  const place = { archive: join(parent, "hf_env.tar.gz"), python: join(parent, "hf_env", "bin", "python") };
  const isMade = async () => (await stat(place.archive).catch(() => null)) !== null;
  if (await isMade()) return place;
  await mkdir(parent, { recursive: true });
  using _lock = await acquireLock(`${parent}.making`, AbortSignal.timeout(600_000));
  if (await isMade()) return place;
  const partial = join(parent, "making.tar.gz");
  await rm(partial, { force: true });
  await run(example("create_hf_env.sh"), [join(parent, "hf_env"), partial], { maxBuffer: 2 ** 24 });
  await rename(partial, place.archive);
  return place;
}
