import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startGalatea, startOracle, type RunningServer } from "../conformance/environments/index.ts";
import type { BenchContext } from "./row.ts";

/** A model of a bench: its configuration and its program in `bench/models`; null for ensembles. */
export interface BenchModel {
  readonly config: string;
  readonly program: string | null;
  /** Further files next to the program, by name. */
  readonly files?: Readonly<Record<string, Uint8Array>>;
}

export type BenchModels = Readonly<Record<string, BenchModel>>;

const programs = fileURLToPath(new URL("models/", import.meta.url));

export async function writeModels(directory: string, models: BenchModels): Promise<void> {
  for (const [name, model] of Object.entries(models)) {
    await mkdir(join(directory, name, "1"), { recursive: true });
    await writeFile(join(directory, name, "config.pbtxt"), model.config);
    if (model.program !== null) await cp(join(programs, model.program), join(directory, name, "1", "model.py"));
    for (const [file, content] of Object.entries(model.files ?? {}))
      await writeFile(join(directory, name, "1", file), content);
  }
}

/** A directory that is removed at the end of its scope. */
export async function temporaryDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "galatea-bench-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

export interface PairOptions {
  readonly flags?: readonly string[];
  readonly galateaFlags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Pair extends AsyncDisposable {
  readonly galatea: RunningServer;
  readonly oracle: RunningServer;
}

/** Both servers with the same models; the server that is not measured is idle. */
export async function startPair(context: BenchContext, models: BenchModels, options: PairOptions = {}): Promise<Pair> {
  const directory = await mkdtemp(join(tmpdir(), "galatea-bench-"));
  await writeModels(directory, models);
  const cleanUp = () => rm(directory, { recursive: true, force: true });
  try {
    return await startPairOver(context, { galatea: directory, oracle: directory }, options, cleanUp);
  } catch (error) {
    await cleanUp();
    throw error;
  }
}

/** Both servers, each with its own repository. */
export async function startPairOver(
  context: BenchContext,
  repositories: { readonly galatea: string; readonly oracle: string },
  options: PairOptions,
  cleanUp: () => Promise<void>,
): Promise<Pair> {
  const oracle = await startOracle(context.oracle, { repositories: [repositories.oracle], ...options });
  const flags = [...(options.flags ?? []), ...(options.galateaFlags ?? [])];
  const galatea = await startGalatea({ repositories: [repositories.galatea], ...options, flags }).catch(
    async (error: unknown) => {
      await oracle.stop();
      throw error;
    },
  );
  return {
    galatea,
    oracle,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([galatea.stop(), oracle.stop()]);
      await cleanUp();
    },
  };
}

/** One figure for each round and server. */
export interface Figures {
  readonly ours: readonly number[];
  readonly oracle: readonly number[];
}

/** Alternating rounds; which server is first changes from round to round. */
export async function alternate(
  context: BenchContext,
  servers: { readonly galatea: RunningServer; readonly oracle: RunningServer },
  what: string,
  measure: (server: RunningServer) => Promise<number>,
): Promise<Figures> {
  const [figures] = await alternateAll(context, servers, [what], async (server) => [await measure(server)]);
  if (figures === undefined) throw new Error("bug: no figures of one measure");
  return figures;
}

/** Measures runs with several figures, one for each name in `whats`. */
export async function alternateAll(
  context: BenchContext,
  servers: { readonly galatea: RunningServer; readonly oracle: RunningServer },
  whats: readonly string[],
  measure: (server: RunningServer) => Promise<readonly number[]>,
): Promise<readonly Figures[]> {
  const all = whats.map(() => ({ ours: [] as number[], oracle: [] as number[] }));
  for (let round = 0; round < context.rounds; round++) {
    for (const server of round % 2 === 0 ? [servers.galatea, servers.oracle] : [servers.oracle, servers.galatea]) {
      const measured = await measure(server);
      for (const [index, figures] of all.entries()) {
        const figure = measured[index] ?? Number.NaN;
        (server.kind === "galatea" ? figures.ours : figures.oracle).push(figure);
        context.log(`${whats[index]}, round ${round + 1}, ${server.kind}: ${figure.toFixed(3)}`);
      }
    }
  }
  return all;
}
