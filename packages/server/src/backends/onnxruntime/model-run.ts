import { assert, InferenceError } from "@galatea/base";
import {
  onnxStringType,
  type OnnxValueInfo,
  type RunCommand,
  type RunResult,
  type RunValue,
} from "../../native/index.ts";
import { type Block, datatypes, elementCount } from "../../tensor/index.ts";
import { datatypeOfElements } from "./element-types.ts";
import type { RunnerSession } from "./runner-control.ts";

export interface ModelInput {
  /** Index in the session's list of inputs. */
  readonly index: number;
  readonly shape: readonly number[];
  /** Offset of the elements in the arena. They are packed and aligned; strings are a BYTES tensor. */
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface ModelOutput {
  readonly index: number;
  /**
   * The block for the elements, of exactly their size (a null block if there are no elements). The whole target is null if the size is
   * unknown before the run.
   */
  readonly target: {
    readonly shape: readonly number[];
    readonly byteLength: number;
    readonly block: Block | null;
  } | null;
}

/** One run of a session. Its tensors are in the caller's arena, and must not change until the run has settled. */
export interface ModelRun {
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly ModelOutput[];
  /** Allocates a block for an output whose size is known only after the run. */
  readonly allocate: (index: number, byteLength: number) => Block;
}

/** The session for a run, and the thread settings. */
export interface RunTarget {
  readonly session: RunnerSession;
  /** Address at which the runner has mapped the arena. */
  readonly base: number;
  readonly processors: readonly number[];
  readonly shrink: boolean;
}

export function toRunCommand(run: ModelRun, { session, base, ...how }: RunTarget): RunCommand {
  return {
    kind: "run",
    session: session.handle,
    ...how,
    inputs: run.inputs.map(({ index, shape, byteOffset, byteLength }): RunValue => {
      const { elementType } = session.inputs[index] as OnnxValueInfo;
      return { name: session.inputNames[index] as number, elementType, address: base + byteOffset, byteLength, shape };
    }),
    outputs: run.outputs.map(({ index, target }): RunValue => {
      const { elementType } = session.outputs[index] as OnnxValueInfo;
      const name = session.outputNames[index] as number;
      if (target === null) return { name, elementType, address: 0, byteLength: 0, shape: null };
      assert(elementType !== onnxStringType, "the size of strings is unknown before the run");
      const address = target.block === null ? 0 : base + target.block.byteOffset;
      return { name, elementType, address, byteLength: target.byteLength, shape: target.shape };
    }),
  };
}

/** Checks the results against the run, because a model may have corrupted the runner process. */
export function checkResults(run: ModelRun, results: readonly RunResult[]): void {
  if (results.length !== run.outputs.length)
    throw new InferenceError(
      "INTERNAL",
      `ONNX Runtime returned ${results.length} outputs, but ${run.outputs.length} were requested`,
    );
  for (const [at, { elementType, byteLength, shape }] of results.entries()) {
    const target = run.outputs[at]?.target ?? null;
    const isAsWanted = target === null || (target.byteLength === byteLength && target.shape.join() === shape.join());
    const datatype = datatypeOfElements(elementType);
    const isPacked =
      datatype === undefined ||
      datatype === "BYTES" ||
      elementCount(shape) * datatypes[datatype].byteSize === byteLength;
    if (!isAsWanted || !isPacked) {
      throw new InferenceError(
        "INTERNAL",
        `a run returned ${byteLength} bytes for an output of shape [${shape.join()}]`,
      );
    }
  }
}

/** Allocates blocks for the outputs that have none. Returns their addresses in the runner; 0 for empty outputs. */
export function allocateOutputs(run: ModelRun, results: readonly RunResult[], base: number): readonly number[] {
  return run.outputs.map(({ index, target }, at) => {
    const { byteLength } = results[at] as RunResult;
    if (target !== null || byteLength === 0) return 0;
    return base + run.allocate(index, byteLength).byteOffset;
  });
}
