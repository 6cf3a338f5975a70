import { randomUUID } from "node:crypto";
import { access, constants, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { asDiskError, type Clock } from "@galatea/base";
import { lookForGpu, missingForTensorRt } from "@galatea/server/backends";
import { describeEnd, spawnProcess } from "@galatea/base/processes";
import { ConversionError } from "./conversion-error.ts";

/** The shapes that a plan is built for, by input, in trtexec's own spelling: "input_ids:1x128,attention_mask:1x128". */
export interface PlanShapes {
  readonly min: string;
  readonly opt: string;
  readonly max: string;
}

export interface PlanConversion {
  /** An ONNX file. */
  readonly source: string;
  /** The plan, replaced where it is there already. */
  readonly target: string;
  /** Null for a model without variable dimensions. */
  readonly shapes: PlanShapes | null;
  readonly halfPrecision: boolean;
  /** As `planBuilder` found it. */
  readonly command: string;
  /** The whole environment that it runs with. */
  readonly env: Readonly<Record<string, string>>;
  readonly onProgress: (line: string) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const builder = "trtexec";
/** Where TensorRT's packages and containers put it. */
const packageDirectories = ["/usr/src/tensorrt/bin", "/opt/tensorrt/bin", "/usr/local/tensorrt/bin"];
const endGraceMs = 5000;
const wordsTold = 5;

/**
 * Builds a plan with TensorRT's own program, which runs the model on the GPU to find what is fastest there: minutes, as a rule. The target is
 * there whole or not at all. Throws ConversionError with what the program said.
 */
export async function buildPlan(conversion: PlanConversion): Promise<{ readonly byteLength: number }> {
  const { command, source, clock, env, onProgress, signal } = conversion;
  const target = resolve(conversion.target);
  if ((await stat(dirname(target)).catch(() => null))?.isDirectory() !== true)
    throw new ConversionError(`'${dirname(target)}' is no directory to write '${basename(target)}' in`);
  const making = join(dirname(target), `.${basename(target)}.${randomUUID()}`);
  try {
    await using child = await spawnProcess({
      command,
      args: planArguments({ ...conversion, source: resolve(source), target: making }),
      env,
      cwd: null,
      extraFds: [],
      onLine: onProgress,
      onExit: () => {},
      clock,
    });
    const stop = () => void child.stop(endGraceMs);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const end = await child.ended;
    signal.removeEventListener("abort", stop);
    signal.throwIfAborted();
    const made = await stat(making).catch(() => null);
    if (end.exitCode !== 0 || made === null || made.size === 0)
      throw new ConversionError(
        `${command} ended with ${describeEnd(end)}: ${child.outputTail().slice(-wordsTold).join(" | ") || "it said nothing"}`,
      );
    await rename(making, target);
    return { byteLength: made.size };
  } catch (error) {
    throw asDiskError(error, `'${target}'`);
  } finally {
    await rm(making, { force: true });
  }
}

export function planArguments(
  plan: Pick<PlanConversion, "source" | "target" | "shapes" | "halfPrecision">,
): readonly string[] {
  const { source, target, shapes, halfPrecision } = plan;
  return [
    `--onnx=${source}`,
    `--saveEngine=${target}`,
    ...(shapes === null ? [] : [`--minShapes=${shapes.min}`, `--optShapes=${shapes.opt}`, `--maxShapes=${shapes.max}`]),
    ...(halfPrecision ? ["--fp16"] : []),
    "--skipInference",
  ];
}

/** TensorRT's program, below PATH or where packages put it. Throws ConversionError that names what the machine lacks. */
export async function planBuilder(path: string): Promise<string> {
  for (const directory of [...path.split(":").filter(Boolean), ...packageDirectories]) {
    const command = join(directory, builder);
    const found = await access(command, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return command;
  }
  throw new ConversionError(noBuilder(missingForTensorRt(await lookForGpu())));
}

function noBuilder(missing: readonly string[]): string {
  const lacks = missing.length === 0 ? "" : `, and this machine lacks ${missing.join(", ")}`;
  return (
    `a plan is built by TensorRT's own '${builder}', which is neither in PATH nor in ${packageDirectories[0]}${lacks}. Build it where the ` +
    "plan is going to run: it is code for one kind of GPU and one version of TensorRT"
  );
}

/** Shapes of an encoder's inputs, each [batch, tokens]: one token alone, and the longest sentences in the largest batch. */
export function encoderShapes(inputs: readonly string[], batchMax: number, tokensMax: number): PlanShapes {
  const all = (batch: number, tokens: number) => inputs.map((name) => `${name}:${batch}x${tokens}`).join(",");
  return {
    min: all(1, 1),
    opt: all(Math.max(1, batchMax >> 1), Math.min(tokensMax, 128)),
    max: all(batchMax, tokensMax),
  };
}
