import { existsSync } from "node:fs";
import { join } from "node:path";
import { ContainerRefusal, type ContainerKind, type KindStart, type OpenedContainer } from "../container-kind.ts";
import { readRequirements } from "./requirements.ts";
import { bodyInput, bodyOutput, scriptCodec } from "./script-codec.ts";
import { mayStream } from "./script-streams.ts";
import { scriptSettings } from "./script-settings.ts";

export interface ScriptContainerOptions {
  /** The python-based backend that runs scripts, with default functions for the framework. */
  readonly runner: string;
  /** The framework's name for `galatea model add`. */
  readonly framework: string;
}

export function scriptContainer(options: ScriptContainerOptions): ContainerKind {
  return { open: (start) => openScriptContainer(options, start) };
}

/** Combines two modes of one image: `scripts` if SAGEMAKER_PROGRAM is set, else `otherwise`. */
export function scriptOrElse(scripts: ContainerKind, otherwise: ContainerKind): ContainerKind {
  return { open: (start) => ((start.environment.SAGEMAKER_PROGRAM ?? "") === "" ? otherwise : scripts).open(start) };
}

function openScriptContainer({ runner, framework }: ScriptContainerOptions, start: KindStart): OpenedContainer {
  const { workerCount, batchSizeMax, batchDelayUs, callMsMax, bodyBytesMax, notes } = scriptSettings(start);
  const codeDirectory = submittedCode(start);
  const config = {
    backend: runner,
    max_batch_size: batchSizeMax > 1 ? batchSizeMax : 0,
    ...(batchSizeMax > 1 ? { dynamic_batching: { max_queue_delay_microseconds: batchDelayUs } } : {}),
    input: [{ name: bodyInput, data_type: "TYPE_STRING", dims: [1] }],
    output: [{ name: bodyOutput, data_type: "TYPE_STRING", dims: [1] }],
    instance_group: [{ count: workerCount, kind: "KIND_MODEL" }],
  };
  return {
    codec: scriptCodec,
    opensPort: false,
    readPaths: codeDirectory === null ? [] : [codeDirectory],
    callMsMax,
    bodyBytesMax,
    notes,
    modelsIn: async (directory, installer) => {
      const code = [...(codeDirectory === null ? [] : [codeDirectory]), join(directory, "code")];
      const packages = await readRequirements(code);
      const streams = await mayStream([...code, directory], start.environment.SAGEMAKER_PROGRAM ?? null);
      const parameters = stringParameters({
        batch_size: String(batchSizeMax),
        code_dir: codeDirectory,
        packages_dir: packages.length === 0 ? null : await installer(framework, packages),
      });
      return [{ name: "model", directory, config: { ...config, ...(streams ? decoupled : {}), parameters } }];
    },
  };
}

const decoupled = { model_transaction_policy: { decoupled: true } };

function stringParameters(values: Readonly<Record<string, string | null>>) {
  const input = Object.entries(values).filter(([, value]) => value !== null);
  return Object.fromEntries(input.map(([key, value]) => [key, { string_value: value }]));
}

/**
 * Returns the directory of the code that all archives of the container share; null if each archive has its own code. If
 * SAGEMAKER_SUBMIT_DIRECTORY is an S3 URI, the platform has unpacked its object to this directory before the container started.
 */
function submittedCode({ environment, mlRoot }: KindStart): string | null {
  const submitted = environment.SAGEMAKER_SUBMIT_DIRECTORY ?? "";
  if (!submitted.startsWith("s3://")) return null;
  const directory = join(mlRoot, "code");
  if (existsSync(directory)) return directory;
  throw new ContainerRefusal(
    `ERROR: SAGEMAKER_SUBMIT_DIRECTORY names ${submitted}, which was not copied to ${directory}`,
  );
}
