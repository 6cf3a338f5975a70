import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheDirectory, startGalatea, type RunningServer } from "../environments/index.ts";
import { shareMadePython } from "../shared-python.ts";
import { processesMarked, sharedMemoryNames } from "./processes.ts";
import { until } from "./until.ts";

/** Directories of one test file for everything that its processes write, and a mark by which the processes are found. */
export interface Workspace {
  readonly directory: string;
  readonly repository: string;
  readonly mlRoot: string;
  readonly data: string;
  /** TMPDIR of every process that is started here; empty when all of them have cleaned up. */
  readonly temporary: string;
  readonly mark: string;
  /** The directory in which models of any tenant and their test exchange files. */
  readonly meeting: string;
}

export interface Serving extends AsyncDisposable, Workspace {
  readonly server: RunningServer;
  /** Stops the server as its user would, or finds it ended, then checks that it has left no files and processes. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Node's compiled code is kept between runs, outside of the directory that must be empty at the end. */
export const compileCache = join(cacheDirectory(process.env), "node-compile-cache");

export interface ServingOptions {
  /** Fills the repository before the start. */
  readonly write?: (workplace: Workspace) => Promise<void>;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export async function createWorkspace(): Promise<Workspace> {
  const directory = await mkdtemp(join(tmpdir(), "galatea-faults-"));
  const at = (name: string) => join(directory, name);
  const location = {
    directory,
    repository: at("repository"),
    mlRoot: at("ml"),
    data: at("data"),
    temporary: at("tmp"),
    mark: `TMPDIR=${at("tmp")}\0`,
    meeting: at("meeting"),
  };
  for (const path of [location.repository, join(location.mlRoot, "models"), location.data, location.temporary]) {
    await mkdir(path, { recursive: true });
  }
  await mkdir(location.meeting);
  await chmod(location.meeting, 0o777);
  await shareMadePython(location.data);
  return location;
}

/** `galatea serve` over its own repository, with explicit model control unless the flags select another mode. */
export async function openServing(options: ServingOptions = {}): Promise<Serving> {
  const workspace = await createWorkspace();
  try {
    await options.write?.(workspace);
    const server = await startGalatea({
      repositories: [workspace.repository],
      flags: [`--data=${workspace.data}`, `--ml-root=${workspace.mlRoot}`, ...(options.flags ?? [])],
      env: { TMPDIR: workspace.temporary, NODE_COMPILE_CACHE: compileCache, ...options.env },
    });
    return {
      ...workspace,
      server,
      [Symbol.asyncDispose]: async () => {
        try {
          assertNoSharedMemory(workspace);
          await server.stop();
          await assertNothingLeft(workspace);
        } finally {
          await rm(workspace.directory, { recursive: true, force: true });
        }
      },
    };
  } catch (error) {
    await rm(workspace.directory, { recursive: true, force: true });
    throw error;
  }
}

/** Tensors are in memory files without a name: none of our processes may have a file in /dev/shm. */
export function assertNoSharedMemory(workspace: Workspace): void {
  const names = processesMarked(workspace.mark).flatMap(({ pid }) => sharedMemoryNames(pid));
  assert.deepEqual(names, [], "names in /dev/shm");
}

/** Checks that no process and no temporary file is left. Processes get a moment, because the kernel ends them after their parent. */
export async function assertNothingLeft(workspace: Workspace): Promise<void> {
  await assertNoProcesses(workspace);
  assert.deepEqual(await readdir(workspace.temporary, { recursive: true }), [], "files left in the temporary folder");
}

export async function assertNoProcesses(workspace: Workspace): Promise<void> {
  await until("all processes have ended", () => processesMarked(workspace.mark).length === 0).catch(() => {
    const left = processesMarked(workspace.mark);
    for (const { pid } of left) process.kill(pid, "SIGKILL");
    assert.deepEqual(left, [], "processes left behind");
  });
}
