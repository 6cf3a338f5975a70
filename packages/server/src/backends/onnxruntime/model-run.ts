import { assert, InferenceError } from "@galatea/base";
import {
  onnxStringType,
  type OnnxValueInfo,
  type RunOrder,
  type RunResult,
  type RunValue,
} from "../../native/index.ts";
import { type Block, datatypes, elementCount } from "../../tensor/index.ts";
import { datatypeOfElements } from "./element-types.ts";
import type { RunnerSession } from "./runner-control.ts";

export interface ModelInput {
  /** Index among the session's inputs. */
  readonly index: number;
  readonly shape: readonly number[];
  /** Offset of the elements in the arena, packed and aligned; strings as a BYTES tensor. */
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface ModelOutput {
  readonly index: number;
  /** Destination of the elements, a block of exactly their size (null when there are none); null when the size is unknown. */
  readonly target: {
    readonly shape: readonly number[];
    readonly byteLength: number;
    readonly block: Block | null;
  } | null;
}

/** One run of a session over the arena of the caller, who lends all memory until it settles. */
export interface ModelRun {
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly ModelOutput[];
  /** Allocates a block for an output whose size only the run determines. */
  readonly allocate: (index: number, byteLength: number) => Block;
}

/** The session of a run and how to run it. */
export interface RunTarget {
  readonly session: RunnerSession;
  /** Address of the arena in the runner. */
  readonly base: number;
  readonly processors: readonly number[];
  readonly shrink: boolean;
}

export function laneOrder(run: ModelRun, { session, base, ...how }: RunTarget): RunOrder {
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

/** Checks a runner's results against the run: a model may have corrupted its process. */
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

/** Allocates blocks for the outputs without one; returns their addresses in the runner, 0 for empty outputs. */
export function placed(run: ModelRun, results: readonly RunResult[], base: number): readonly number[] {
  return run.outputs.map(({ index, target }, at) => {
    const { byteLength } = results[at] as RunResult;
    if (target !== null || byteLength === 0) return 0;
    return base + run.allocate(index, byteLength).byteOffset;
  });
}
