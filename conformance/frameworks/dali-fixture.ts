import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  cacheDirectory,
  ensureEnvironment,
  ensureFramework,
  startGalatea,
  type RunningServer,
} from "../environments/index.ts";
import type { Case } from "./framework-fixture.ts";

const run = promisify(execFile);

export interface DaliFixture extends AsyncDisposable {
  readonly server: RunningServer;
  readonly directory: string;
  readonly repository: string;
  readonly cases: readonly Case[];
  /** JPEG files that packages ship. */
  readonly photographs: readonly string[];
  /** The interpreter that has another decoder than DALI's. */
  readonly decoder: string;
}

/** Real photographs: two of scikit-learn's, one of Matplotlib's. */
export async function photographsOfPackages(): Promise<{ readonly files: readonly string[]; readonly python: string }> {
  const { python, sitePackages } = await ensureEnvironment(cacheDirectory(process.env), "photographs");
  const places = [
    "sklearn/datasets/images/china.jpg",
    "sklearn/datasets/images/flower.jpg",
    "matplotlib/mpl-data/sample_data/grace_hopper.jpg",
  ];
  return { files: places.map((place) => join(sitePackages, place)), python };
}

/** Our server over a repository that DALI wrote; nothing is loaded. */
export async function openDali(): Promise<DaliFixture> {
  const { python } = await ensureFramework("dali");
  const photographs = await photographsOfPackages();
  const directory = await mkdtemp(join(tmpdir(), "galatea-dali-"));
  const repository = join(directory, "repository");
  await mkdir(repository);
  const models = fileURLToPath(new URL("dali_models.py", import.meta.url));
  await run(python, [models, repository, ...photographs.files]);
  const cases = JSON.parse(await readFile(join(directory, "cases.json"), "utf8")) as Case[];
  const server = await startGalatea({ repositories: [repository], flags: ["--model-control-mode=explicit"] });
  return {
    server,
    directory,
    repository,
    cases,
    photographs: photographs.files,
    decoder: photographs.python,
    async [Symbol.asyncDispose]() {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
