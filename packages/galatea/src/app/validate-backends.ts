import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { InferenceError, silentLogger, systemClock } from "@galatea/base";
import { insteadOfBackend, noNamespaceMetrics, noOtherModels, type Backend } from "@galatea/server/backends";
import { placedInstances, type ModelConfig, type PlacedInstance } from "@galatea/server/modelconfig";
import type { BackendCheck, CheckedByBackend } from "@galatea/server/repository";
import { createArena, type Arena } from "@galatea/server/tensor";
import { checkWarmUps } from "@galatea/server/engine";
import type { DataDirectories } from "./directories.ts";
import { runnerEnvironment } from "./passed-environment.ts";
import { madePython } from "./serving/python.ts";
import { onnxRuntimeLibrary } from "@galatea/server/native";

type FoundModel = Parameters<BackendCheck>[0];

const parseMsMax = 30_000;
/** Memory for warm-up samples; only what a sample fills is taken. */
const arenaBytes = 2 ** 32;
/**
 * Parses the program without running it. Prints the syntax errors, `completes` for a program that defines, or may have inherited,
 * auto_complete_config, and what a load says of a program that nowhere names the class or the method that Triton calls.
 */
const parseProgram = `
import ast
import os
import sys
def names(tree, word):
    return any(word in value for node in ast.walk(tree) for _, value in ast.iter_fields(node) if isinstance(value, str))
def refuse(path, tree):
    isBare = lambda node: not (node.bases or node.keywords or node.decorator_list)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "TritonPythonModel"]
    if not names(tree, "TritonPythonModel") and not names(tree, "*"):
        module = os.path.splitext("/".join(path.split("/")[-2:]))[0].replace("/", ".")
        print(f"AttributeError: module '{module}' has no attribute 'TritonPythonModel'")
    elif classes and all(map(isBare, classes)) and not names(tree, "execute"):
        print(f"Python model {path} does not implement \`execute\` method.")
for path in sys.argv[1:]:
    try:
        with open(path, "rb") as file:
            text = file.read()
        compile(text, path, "exec")
        tree = ast.parse(text, path)
        refuse(path, tree)
        for node in ast.walk(tree):
            isMethod = isinstance(node, ast.FunctionDef) and node.name == "auto_complete_config"
            isHeir = isinstance(node, ast.ClassDef) and node.name == "TritonPythonModel" and node.bases
            if isMethod or isHeir:
                print("completes")
                break
    except (SyntaxError, ValueError) as error:
        print(f"{path}:{getattr(error, 'lineno', None) or 1}: {type(error).__name__}: {getattr(error, 'msg', error)}")
`;

/** What backends find wrong with the files of a model, without starting it. */
export class BackendChecks implements AsyncDisposable {
  /** What could not be looked at, and why. */
  readonly notes = new Set<string>();
  readonly #directories: DataDirectories;
  readonly #backendDirectory: string | null;
  #onnx: Backend | null = null;
  #arena: Arena | null = null;

  constructor(directories: DataDirectories, backendDirectory: string | null) {
    this.#directories = directories;
    this.#backendDirectory = backendDirectory;
  }

  async check(found: FoundModel): Promise<CheckedByBackend> {
    const { problems, completion } = await this.#backendCheck(found);
    return { problems: [...problems, ...(await this.#warmUpProblems(found, completion))], completion };
  }

  async #warmUpProblems(found: FoundModel, completion: ModelConfig | null): Promise<readonly string[]> {
    const [newest] = found.versions.toReversed();
    if (newest === undefined) return [];
    const { servedName, modelDirectory } = found;
    return checkWarmUps(
      {
        namespace: "",
        arena: (this.#arena ??= createArena({ capacityBytes: arenaBytes })),
        source: { servedName, modelDirectory, version: newest.version, versionDirectory: newest.directory },
        config: completion ?? found.config,
        clock: systemClock,
        log: silentLogger,
        fillRandom: () => {},
        signal: new AbortController().signal,
      },
      completion === null ? null : placementOf(completion).instances,
    );
  }

  async #backendCheck(found: FoundModel): Promise<CheckedByBackend> {
    const { config } = found;
    if (config.platform === "ensemble") return { problems: [], completion: config };
    if (config.backend === "onnxruntime") return await this.#opened(found);
    if (config.backend === "fil") return { problems: await treesWrong(found), completion: config };
    if (config.backend === "python") {
      const missing = await missingEnvironment(found);
      const { wrong, completes } = await this.#parsed(found);
      // A program may add tensors and a batch size; it contradicts none that is configured.
      const isCompleted = !completes || (isDescribed(config) && config.maxBatchSize > 0);
      const { problems } = placementOf(config);
      return { problems: [...missing, ...problems, ...wrong], completion: isCompleted ? config : null };
    }
    const completion = isDescribed(config) ? config : null;
    if (await this.#hasRunner(config.backend)) return { problems: await missingEnvironment(found), completion };
    if (await this.#isFramework(config.backend)) return { problems: [], completion };
    const instead = await insteadOfBackend(config.backend, [found.modelDirectory]);
    const unable = `unable to find backend library for backend '${config.backend}'`;
    const problem = `${unable}. This server has: onnxruntime, python, fil.${instead === null ? "" : ` ${instead}.`}`;
    return { problems: [problem], completion };
  }

  /** Returns whether a framework runs the backend. Model files are not read here: only the framework reads them. */
  async #isFramework(backend: string): Promise<boolean> {
    const { frameworkNamed, madeFramework } = await import("@galatea/server/backends/python");
    const framework = frameworkNamed(backend);
    if (framework === null) return false;
    if ((await madeFramework(this.#directories.frameworks, framework)) === null)
      this.notes.add(`the backend '${backend}' is not set up on this machine: galatea model add ${backend}`);
    return true;
  }

  /** Of python-based backends the program that runs their models is the operator's, and is not looked at. */
  async #hasRunner(backend: string): Promise<boolean> {
    if (this.#backendDirectory === null) return false;
    const { runnersIn } = await import("@galatea/server/backends/python");
    return (await runnersIn(resolve(this.#backendDirectory))(backend)) !== null;
  }

  async #parsed({ config, versions }: FoundModel): Promise<{ wrong: readonly string[]; completes: boolean }> {
    const files = versions.map(({ directory }) => join(directory, config.defaultModelFilename));
    const python = (await madePython(this.#directories)) ?? "python3";
    try {
      const { stdout } = await promisify(execFile)(python, ["-I", "-c", parseProgram, ...files], {
        timeout: parseMsMax,
      });
      const lines = stdout.split("\n").filter((line) => line !== "");
      return { wrong: lines.filter((line) => line !== "completes"), completes: lines.includes("completes") };
    } catch (error) {
      const why =
        (error as NodeJS.ErrnoException).code === "ENOENT"
          ? "there is no python3, and the server has made no environment yet"
          : (error as Error).message;
      this.notes.add(`Python files were not parsed: ${why}`);
      return { wrong: [], completes: true };
    }
  }

  /** Completes and loads as the server does, for the CPU. */
  async #opened({ servedName, modelDirectory, config, versions }: FoundModel): Promise<CheckedByBackend> {
    const backend = await this.#onnxBackend();
    const arena = (this.#arena ??= createArena({ capacityBytes: arenaBytes }));
    const problems: string[] = [];
    let completion: ModelConfig | null = null;
    for (const { version, directory } of versions) {
      try {
        const source = { servedName, modelDirectory, version, versionDirectory: directory };
        const { signal } = new AbortController();
        const about = {
          backendConfig: new Map<string, string>(),
          onHealth: () => {},
          others: noOtherModels,
          metrics: noNamespaceMetrics,
        };
        const context = { arena, ...about, signal };
        completion = await backend.complete(source, config, context);
        await using _model = await backend.load(source, completion, context);
      } catch (error) {
        if (!(error instanceof InferenceError)) throw error;
        problems.push(error.message);
      }
    }
    return { problems, completion };
  }

  async #onnxBackend(): Promise<Backend> {
    if (this.#onnx !== null) return this.#onnx;
    const { createOnnxRuntimeBackend, onnxRuntimeBackendDefaults } =
      await import("@galatea/server/backends/onnxruntime");
    this.#onnx = createOnnxRuntimeBackend({
      ...onnxRuntimeBackendDefaults,
      libraryPath: onnxRuntimeLibrary(),
      processEnv: runnerEnvironment(),
      slotCount: 1,
      runDeadlineMs: null,
      intraOpThreadCount: 1,
      ownThreadCountMax: 8 * availableParallelism(),
      log: silentLogger,
      clock: systemClock,
    });
    return this.#onnx;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#onnx?.[Symbol.asyncDispose]();
    this.#arena?.[Symbol.dispose]();
  }
}

/** Returns the instances of a model on a machine without GPUs, or why there are none. */
function placementOf(config: ModelConfig): { instances: readonly PlacedInstance[]; problems: readonly string[] } {
  try {
    return { instances: placedInstances(config, 0), problems: [] };
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    return { instances: [], problems: [error.message] };
  }
}

function isDescribed({ inputs, outputs }: ModelConfig): boolean {
  return inputs.length > 0 && outputs.length > 0;
}

async function treesWrong({ config, versions }: FoundModel): Promise<readonly string[]> {
  const { checkTreeModel } = await import("@galatea/runtimes/trees");
  const wrong: string[] = [];
  for (const { directory } of versions) {
    try {
      await checkTreeModel(directory, config);
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      wrong.push(error.message);
    }
  }
  return wrong;
}

async function missingEnvironment({ modelDirectory, config }: FoundModel): Promise<readonly string[]> {
  const asked = config.parameters.get("EXECUTION_ENV_PATH");
  if (asked === undefined || asked === "") return [];
  const { environmentPath } = await import("@galatea/server/backends/python");
  const path = environmentPath(asked, modelDirectory);
  const isThere = await stat(path).then(
    () => true,
    () => false,
  );
  return isThere ? [] : [`EXECUTION_ENV_PATH '${asked}' does not exist: ${path}`];
}
