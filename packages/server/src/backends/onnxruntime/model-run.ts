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
  /** Place among the session's inputs. */
  readonly index: number;
  readonly shape: readonly number[];
  /** Where in the arena the elements lie, packed and aligned; strings as a BYTES tensor. */
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface ModelOutput {
  readonly index: number;
  /** Where the elements shall be written, a block of just their size (null where there are none); null where the size is not known. */
  readonly target: {
    readonly shape: readonly number[];
    readonly byteLength: number;
    readonly block: Block | null;
  } | null;
}

/** One run of a session over the arena of whoever wants it. All memory is lent until it settles. */
export interface ModelRun {
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly ModelOutput[];
  /** A block for an output whose size only the run knew. */
  readonly allocate: (index: number, byteLength: number) => Block;
}

/** Where a run happens. */
export interface RunPlace {
  readonly session: RunnerSession;
  /** Of the arena, in the runner. */
  readonly base: number;
  readonly processors: readonly number[];
  readonly shrink: boolean;
}

export function laneOrder(run: ModelRun, { session, base, ...how }: RunPlace): RunOrder {
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
      assert(elementType !== onnxStringType, "strings have no size before they are there");
      const address = target.block === null ? 0 : base + target.block.byteOffset;
      return { name, elementType, address, byteLength: target.byteLength, shape: target.shape };
    }),
  };
}

/** What a runner says that it made is believed as far as it fits: a model may have damaged its process. */
export function checkResults(run: ModelRun, results: readonly RunResult[]): void {
  if (results.length !== run.outputs.length)
    throw new InferenceError("INTERNAL", "a run with other outputs than wanted");
  for (const [at, { elementType, byteLength, shape }] of results.entries()) {
    const target = run.outputs[at]?.target ?? null;
    const isAsWanted = target === null || (target.byteLength === byteLength && target.shape.join() === shape.join());
    const datatype = datatypeOfElements(elementType);
    const isPacked =
      datatype === undefined ||
      datatype === "BYTES" ||
      elementCount(shape) * datatypes[datatype].byteSize === byteLength;
    if (!isAsWanted || !isPacked) {
      throw new InferenceError("INTERNAL", `a run gave ${byteLength} bytes for an output of shape [${shape.join()}]`);
    }
  }
}

/** Blocks for the outputs that have none yet; their addresses in the runner, 0 where none is needed. */
export function placed(run: ModelRun, results: readonly RunResult[], base: number): readonly number[] {
  return run.outputs.map(({ index, target }, at) => {
    const { byteLength } = results[at] as RunResult;
    if (target !== null || byteLength === 0) return 0;
    return base + run.allocate(index, byteLength).byteOffset;
  });
}
