import assert from "node:assert/strict";
import { env } from "node:process";
import { openOnnxRuntime, plainSession, type OnnxRuntime } from "./onnxruntime.ts";
import { onnxRuntimeLibrary } from "./onnxruntime-library.ts";
import { DirectRuns } from "./direct-runs-fixture.ts";

export function openRuntime(): OnnxRuntime {
  // Official builds of the library leave files in the temporary directory unless this is set.
  env["ORT_DISABLE_TELEMETRY"] = "1";
  return openOnnxRuntime({
    libraryPath: onnxRuntimeLibrary(),
    intraOpThreadCount: 1,
    interOpThreadCount: 1,
    ownThreadCountMax: 0,
    spin: false,
  });
}

export interface RunInput {
  readonly shape: readonly number[];
  readonly numbers: readonly number[];
}

export interface RunOutput {
  readonly shape: readonly number[];
  readonly numbers: Float32Array;
}

/** Runs a model with integer inputs and FP32 outputs through ONNX Runtime's own session. Inputs and outputs are addressed by name. */
export async function runOnnx(
  runtime: OnnxRuntime,
  modelPath: string,
  runs: readonly Readonly<Record<string, RunInput>>[],
): Promise<readonly ReadonlyMap<string, RunOutput>[]> {
  await using session = await runtime.openSession({ modelPath, ...plainSession });
  const caller = new DirectRuns(runtime, session);
  return runs.map((inputs) => {
    assert.deepEqual(session.inputs.map(({ name }) => name).toSorted(), Object.keys(inputs).toSorted());
    const responses = new Map<string, RunOutput>();
    caller.run({
      inputs: session.inputs.map(({ name, elementType }, index) => {
        const { shape, numbers } = inputs[name] as RunInput;
        // INT64 is 7 in ONNX, INT32 is 6.
        const typed = elementType === 7 ? BigInt64Array.from(numbers, BigInt) : Int32Array.from(numbers);
        return { index, shape, data: new Uint8Array(typed.buffer) };
      }),
      outputs: session.outputs.map((_, index) => ({ index, target: null })),
      place: (index, { shape }) => {
        const numbers = new Float32Array(shape.reduce((product, dim) => product * dim, 1));
        responses.set(session.outputs[index]!.name, { shape, numbers });
        return new Uint8Array(numbers.buffer);
      },
    });
    return responses;
  });
}
