import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "../../modelconfig/index.ts";
import type { OnnxSessionOptions } from "../../native/index.ts";
import { cudaModelParameters } from "./provider-options.ts";

/** The settings of a session, without its model file. Models with equal settings and files share one session. */
export interface SessionParameters {
  readonly options: Omit<OnnxSessionOptions, "modelPath">;
  /** True to free the unused parts of the library's memory pool after each run. */
  readonly shrinksAfterRun: boolean;
}

/** ONNX Runtime's optimization levels by optimization.graph.level, as in Triton. */
const graphLevels: ReadonlyMap<number, OnnxSessionOptions["graphOptimization"]> = new Map([
  [-1, "basic"],
  [0, "all"],
  [1, "extended"],
  [2, "none"],
]);

export interface SessionParameterResult {
  readonly session: SessionParameters;
  /** Parameters that have no effect on the CPU. */
  readonly withoutEffect: readonly string[];
}

/**
 * Reads the session settings from a model's configuration. Throws INVALID_ARG or UNSUPPORTED, with the name of the setting, if a setting
 * cannot be applied.
 */
export function readSessionParameters(config: ModelConfig): SessionParameterResult {
  const accelerators = gpuAccelerators(config);
  const graphOptimization = graphLevels.get(config.graphLevel);
  if (graphOptimization === undefined) {
    throw invalid(
      `unexpected value for optimization.graph.level: ${config.graphLevel}. Expected values are -1, 0, 1 and 2.`,
    );
  }
  const intraOp = readCount(config, "intra_op_thread_count");
  const interOp = readCount(config, "inter_op_thread_count");
  const executionMode = readNumber(config, "execution_mode") ?? 0;
  if (executionMode !== 0 && executionMode !== 1) {
    throw invalid(
      `Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got ${executionMode} .`,
    );
  }
  const initializersOutsideArena = readSwitch(config, "session.use_device_allocator_for_initializers") ?? true;
  return {
    session: {
      shrinksAfterRun: readShrinkage(config),
      options: {
        graphOptimization,
        parallelExecution: executionMode === 1,
        ownThreads: intraOp === 0 && interOp === 0 ? null : { intraOp, interOp },
        memoryArena: readSwitch(config, "enable_mem_arena") ?? true,
        providers: [],
        memoryPattern: readSwitch(config, "enable_mem_pattern") ?? true,
        config: new Map([["session.use_device_allocator_for_initializers", initializersOutsideArena ? "1" : "0"]]),
      },
    },
    withoutEffect: [...cudaModelParameters.filter((key) => config.parameters.has(key)), ...accelerators],
  };
}

/** Accelerators that Triton's onnxruntime backend supports. */
const knownAccelerators = ["tensorrt", "cuda", "openvino"];

/**
 * Returns the requested GPU accelerators, which have no effect on the CPU. Throws for a CPU accelerator, because this server's library
 * contains none.
 */
function gpuAccelerators(config: ModelConfig): readonly string[] {
  const accelerators = config.message.optimization?.executionAccelerators;
  if (accelerators === undefined) return [];
  const { gpuExecutionAccelerator: onGpu, cpuExecutionAccelerator: onCpu } = accelerators;
  const unknown = [...onGpu, ...onCpu].find(({ name }) => !knownAccelerators.includes(name));
  if (unknown !== undefined) throw invalid(`unknown Execution Accelerator '${unknown.name}' is requested`);
  const [desired] = onCpu;
  if (desired === undefined) return onGpu.map(({ name }) => `gpu_execution_accelerator ${name}`);
  throw new InferenceError(
    "UNSUPPORTED",
    `Execution Accelerator '${desired.name}' is requested for model '${config.name}', but this server's ONNX Runtime does not have it`,
  );
}

/** Returns whether the parameter lists "cpu:0", possibly among other devices separated by ";". */
function readShrinkage(config: ModelConfig): boolean {
  const value = config.parameters.get("memory.enable_memory_arena_shrinkage");
  if (value === undefined || value === "") return false;
  const devices = value.split(";");
  const unknown = devices.find((device) => !/^(cpu|gpu):\d+$/.test(device));
  if (unknown !== undefined) {
    throw invalid(`unexpected device '${unknown}' in parameter 'memory.enable_memory_arena_shrinkage', expected cpu:0`);
  }
  return devices.includes("cpu:0");
}

function readSwitch(config: ModelConfig, key: string): boolean | null {
  const value = readNumber(config, key);
  if (value === null) return null;
  if (value !== 0 && value !== 1) {
    throw invalid(`Invalid configuration value provided. Expected values for  ${key} are 0 or 1 but got ${value} .`);
  }
  return value === 1;
}

const threadCountMax = 1024;

function readCount(config: ModelConfig, key: string): number {
  const value = readNumber(config, key) ?? 0;
  if (value < 0 || value > threadCountMax) {
    throw invalid(`unexpected value for parameter '${key}': ${value}. Expected 0 to ${threadCountMax}.`);
  }
  return value;
}

function readNumber(config: ModelConfig, key: string): number | null {
  const text = config.parameters.get(key);
  if (text === undefined) return null;
  if (!/^-?\d{1,9}$/.test(text))
    throw invalid(`failed to convert parameter '${key}' value '${text}' to integral number`);
  return Number(text);
}

function invalid(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", message);
}
