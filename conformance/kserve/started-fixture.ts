import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGalatea, startOracle, type Environment, type RunningServer } from "../environments/index.ts";
import { archives } from "./archives.ts";
import { fixtures, type Fixture, type FixtureName } from "./fixtures.ts";
import { writeRepository } from "./repository.ts";
import type { Masks } from "./send.ts";

/** The server under test: the oracle in its environment, or our server. */
export type Target = { readonly kind: "oracle"; readonly environment: Environment } | { readonly kind: "galatea" };

export interface StartedFixture {
  readonly server: RunningServer;
  readonly masks: Masks;
  stop(): Promise<void>;
  /** Ends a server that hangs or is dead. */
  kill(): Promise<void>;
}

/** Triton always reads /opt/ml. Only the archives of this suite are written there, and removed again. */
const originalRoot = "/opt/ml";

export async function startFixture(target: Target, name: FixtureName): Promise<StartedFixture> {
  const fixture: Fixture = fixtures[name];
  const directory = await mkdtemp(join(tmpdir(), `galatea-kserve-${name}-`));
  const repository = join(directory, "repository");
  await mkdir(repository, { recursive: true });
  await writeRepository(repository, fixture.models);
  const mlRoot = target.kind === "oracle" ? originalRoot : join(directory, "ml");
  const archiveDirectories = name === "multi" ? await writeArchives(mlRoot) : [];
  const cleanUp = async () => {
    for (const path of [directory, ...archiveDirectories]) await rm(path, { recursive: true, force: true });
  };
  const own = target.kind === "oracle" ? (fixture.oracleFlags ?? []) : name === "multi" ? [`--ml-root=${mlRoot}`] : [];
  const flags = [...fixture.flags, ...own];
  const options = { repositories: [repository], flags, env: fixture.env };
  try {
    const server =
      target.kind === "oracle" ? await startOracle(target.environment, options) : await startGalatea(options);
    return {
      server,
      masks: { repository, mlRoot: target.kind === "oracle" ? null : mlRoot },
      stop: async () => {
        await server.stop();
        await cleanUp();
      },
      kill: async () => {
        await server.kill();
        await cleanUp();
      },
    };
  } catch (error) {
    await cleanUp();
    throw error;
  }
}

async function writeArchives(mlRoot: string): Promise<string[]> {
  const written: string[] = [];
  for (const [hash, models] of Object.entries(archives)) {
    const directory = join(mlRoot, "models", hash);
    await rm(directory, { recursive: true, force: true });
    await mkdir(join(directory, "model"), { recursive: true });
    await writeRepository(join(directory, "model"), models);
    written.push(directory);
  }
  return written;
}
