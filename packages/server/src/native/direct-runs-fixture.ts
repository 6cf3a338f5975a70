import { addressOf } from "./onnxruntime-api.ts";
import type { OnnxRuntime, OnnxSession } from "./onnxruntime.ts";
import { RunCaller } from "./onnxruntime-call.ts";
import type { OnnxValueInfo } from "./onnxruntime-values.ts";
import type { RunResult, RunValue } from "./run-wire.ts";

export interface DirectRun {
  /** Packed elements, strings as a BYTES tensor; the library reads them without a copy. */
  readonly inputs: readonly { readonly index: number; readonly shape: readonly number[]; readonly data: Uint8Array }[];
  /** null lets the library allocate the output; the run then calls `place` for the memory to copy it to. */
  readonly outputs: readonly {
    readonly index: number;
    readonly target: { readonly shape: readonly number[]; readonly data: Uint8Array } | null;
  }[];
  readonly place: (index: number, result: RunResult) => Uint8Array;
}

/** Runs a session on the calling thread, with tensors in this process's memory. For benchmarks and tests. */
export class DirectRuns {
  readonly #session: OnnxSession;
  readonly #caller: RunCaller;

  constructor(runtime: OnnxRuntime, session: OnnxSession) {
    this.#session = session;
    this.#caller = new RunCaller(runtime.api);
  }

  run({ inputs, outputs, place }: DirectRun): readonly RunResult[] {
    const { handle, inputNames, outputNames } = this.#session;
    const valueOf = (
      data: Uint8Array | null,
      { name, info, shape }: { name: bigint; info: OnnxValueInfo; shape: readonly number[] | null },
    ): RunValue => ({
      name: Number(name),
      elementType: info.elementType,
      address: data === null || data.byteLength === 0 ? 0 : Number(addressOf(data)),
      byteLength: data?.byteLength ?? 0,
      shape,
    });
    try {
      const results = this.#caller.run({
        kind: "run",
        session: Number(handle),
        shrink: false,
        processors: [],
        inputs: inputs.map(({ index, shape, data }) =>
          valueOf(data, { name: inputNames[index]!, info: this.#session.inputs[index]!, shape }),
        ),
        outputs: outputs.map(({ index, target }) => {
          const about = {
            name: outputNames[index]!,
            info: this.#session.outputs[index]!,
            shape: target?.shape ?? null,
          };
          return valueOf(target?.data ?? null, about);
        }),
      });
      const locations = results.map((result, at) => (result.isPlaced ? null : place(outputs[at]!.index, result)));
      this.#caller.place(locations.map((data) => (data === null ? 0 : Number(addressOf(data)))));
      return results;
    } finally {
      this.#caller.end();
    }
  }
}
