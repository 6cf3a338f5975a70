import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { InferenceError } from "@galatea/base";
import { placedInstances, type ModelConfig } from "../../modelconfig/index.ts";
import type { ModelCheck, ModelSource } from "../backend.ts";
import { environmentPath } from "./environments.ts";

const parseMsMax = 30_000;
/**
 * A Python program that parses model files without running them. It prints syntax errors. It prints `completes` for a file that defines, or
 * may inherit, auto_complete_config. For a file without the class or method that Triton calls, it prints the error of a load.
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
    except FileNotFoundError:
        print(f"{os.path.basename(path)} does not exist in the model repository path: {path}")
    except (SyntaxError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")
`;

export interface PythonCheck {
  readonly source: ModelSource;
  readonly config: ModelConfig;
  /** The Python interpreter that parses model files. */
  readonly python: string;
  readonly gpuCount: number;
}

/** Checks a model without running its code. The program of a python-based backend belongs to the operator and is not parsed. */
export async function checkPythonModel({ source, config, python, gpuCount }: PythonCheck): Promise<ModelCheck> {
  const problems = [...(await missingEnvironment(source, config)), ...unplaced(config, gpuCount)];
  const isDescribed = config.inputs.length > 0 && config.outputs.length > 0;
  if (config.backend !== "python") return { problems, notes: [], completion: isDescribed ? config : null };
  const { wrong, completes, notes } = await parsed(join(source.versionDirectory, config.defaultModelFilename), python);
  // The model's code may add tensors and a batch size, but cannot change configured ones.
  const isCompleted = !completes || (isDescribed && config.maxBatchSize > 0);
  return { problems: [...problems, ...wrong], notes, completion: isCompleted ? config : null };
}

async function parsed(file: string, python: string) {
  try {
    const { stdout } = await promisify(execFile)(python, ["-I", "-c", parseProgram, file], { timeout: parseMsMax });
    const lines = stdout.split("\n").filter((line) => line !== "");
    const wrong = lines.filter((line) => line !== "completes").map((line) => new InferenceError("INTERNAL", line));
    return { wrong, completes: lines.includes("completes"), notes: [] };
  } catch (error) {
    const why =
      (error as NodeJS.ErrnoException).code === "ENOENT"
        ? `there is no ${python}, and the server has created no environment yet`
        : (error as Error).message;
    return { wrong: [], completes: true, notes: [`Python files were not parsed: ${why}`] };
  }
}

/** Returns the errors of instances that cannot be placed on this machine's GPUs. */
function unplaced(config: ModelConfig, gpuCount: number): readonly InferenceError[] {
  try {
    placedInstances(config, gpuCount);
    return [];
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    return [error];
  }
}

async function missingEnvironment(
  { modelDirectory }: ModelSource,
  config: ModelConfig,
): Promise<readonly InferenceError[]> {
  const requested = config.parameters.get("EXECUTION_ENV_PATH");
  if (requested === undefined || requested === "") return [];
  const path = environmentPath(requested, modelDirectory);
  const isThere = await stat(path).then(
    () => true,
    () => false,
  );
  if (isThere) return [];
  return [new InferenceError("INVALID_ARG", `EXECUTION_ENV_PATH '${requested}' does not exist: ${path}`)];
}
