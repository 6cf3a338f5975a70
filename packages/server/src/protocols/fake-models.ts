import { InferenceError } from "@galatea/base";
import { datatypes, type Datatype } from "../tensor/index.ts";
import { arenaTensor } from "./fake-arena.ts";
import type { FakeEngine, FakeModel } from "./fake-engine.ts";

/**
 * Adds the models that most tests use: add_sub, an identity model for each datatype, and a model that fails with the error that its input
 * selects.
 */
export function addUsualModels(engine: FakeEngine): void {
  const sixteen = ["FP32", [16]] as const;
  engine.add("add_sub", {
    inputs: { INPUT0: sixteen, INPUT1: sixteen },
    outputs: { OUTPUT0: sixteen, OUTPUT1: sixteen },
    batches: true,
    labels: Array.from({ length: 10 }, (_, index) => `l${index}`),
    run: (request, arena) => {
      const [a, b] = ["INPUT0", "INPUT1"].map((name) => request.inputs.find((input) => input.name === name)!);
      const left = new Float32Array(a!.data.slice().buffer);
      const right = new Float32Array(b!.data.slice().buffer);
      const shape = a!.shape;
      const sum = new Uint8Array(left.map((value, index) => value + right[index]!).buffer);
      const difference = new Uint8Array(left.map((value, index) => value - right[index]!).buffer);
      return [
        arenaTensor(arena, { name: "OUTPUT0", datatype: "FP32", shape, data: sum }),
        arenaTensor(arena, { name: "OUTPUT1", datatype: "FP32", shape, data: difference }),
      ];
    },
  });
  const identity: FakeModel = (request, arena) =>
    request.inputs.map((input) => arenaTensor(arena, { ...input, name: "OUT" }));
  for (const datatype of Object.keys(datatypes) as Datatype[]) {
    const tensor = [datatype, [-1]] as const;
    engine.add(`id_${datatype.toLowerCase()}`, { inputs: { IN: tensor }, outputs: { OUT: tensor }, run: identity });
  }
  engine.add("id1_bytes", { inputs: { IN: ["BYTES", [1]] }, outputs: { OUT: ["BYTES", [1]] }, run: identity });
  engine.add("slow", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: { OUT: ["FP32", [-1]] },
    run: (request, arena) => {
      const { data } = request.inputs[0]!;
      const code = new DataView(data.buffer, data.byteOffset).getFloat32(0, true);
      if (code === -1) throw new InferenceError("INTERNAL", "boom");
      if (code === -2) throw new InferenceError("INVALID_ARG", "boom");
      if (code === -3) throw new InferenceError("UNAVAILABLE", "boom");
      return identity(request, arena);
    },
  });
  engine.add("untouched", { inputs: {}, outputs: {}, loaded: false, run: () => [] });
}
