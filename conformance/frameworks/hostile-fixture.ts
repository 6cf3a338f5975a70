import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework, startGalatea, type FrameworkName, type RunningServer } from "../environments/index.ts";
import { load, type Reply, unload } from "./framework-fixture.ts";

/** Our server over a repository that `<framework>_hostile.py` wrote, with the model `good` loaded. */
export interface HostileModels extends AsyncDisposable {
  readonly server: RunningServer;
  readonly directory: string;
  readonly repository: string;
  /** The path of a file that no model may create. */
  readonly marker: string;
  /** Models whose load must be rejected. */
  readonly refused: readonly string[];
}

/** Opens the models. `more` returns further arguments of the script for its directory. */
export async function openHostile(
  framework: FrameworkName,
  more: (directory: string) => Promise<readonly string[]> = () => Promise.resolve([]),
): Promise<HostileModels> {
  const { python } = await ensureFramework(framework);
  const directory = await mkdtemp(join(tmpdir(), `galatea-hostile-${framework}-`));
  const [repository, marker] = [join(directory, "repository"), join(directory, "marker")];
  const script = fileURLToPath(new URL(`${framework}_hostile.py`, import.meta.url));
  const { stdout } = await promisify(execFile)(python, [script, repository, marker, ...(await more(directory))]);
  const flags = ["--model-control-mode=explicit", "--load-model=good"];
  const server = await startGalatea({ repositories: [repository], flags });
  return {
    server,
    directory,
    repository,
    marker,
    refused: stdout.trim().split("\n"),
    async [Symbol.asyncDispose]() {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export async function modelsOf({ repository }: HostileModels, prefix: string): Promise<readonly string[]> {
  return (await readdir(repository)).filter((name) => name.startsWith(prefix));
}

interface Trial {
  readonly prefix: string;
  readonly ask: (model: string) => Promise<Reply>;
  /** Throws if the model `good` does not respond correctly. */
  readonly goodAnswers: () => Promise<void>;
}

const atOnce = 4;

/**
 * Loads the models whose names have the prefix, several at a time, and invokes those that load. Each load succeeds or
 * fails with an error, and the model `good` keeps responding. Resolves with the share of failures.
 */
export async function shareRefused(models: HostileModels, { prefix, ask, goodAnswers }: Trial): Promise<number> {
  const names = await modelsOf(models, prefix);
  const waiting = names[Symbol.iterator]();
  let refusedCount = 0;
  const one = async () => {
    for (const name of waiting) {
      const error = await load(models.server, name);
      if (error === null) {
        await ask(name);
        await unload(models.server, name);
      } else {
        refusedCount += 1;
        assert.match(error, /^load failed for model '[^']*': version 1 is at UNAVAILABLE state: (\w+: )?.{20,}/s, name);
      }
      await goodAnswers();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  assert.ok(names.length > 0, `no model is called ${prefix}`);
  return refusedCount / names.length;
}
