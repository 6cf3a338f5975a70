/** Code that programs run while they are loaded, and the errors when it fails. */
import type { Case, Difference } from "../case.ts";
import { differs, get, infer, input, post } from "../requests.ts";
import { programModels } from "../program-models.ts";

const load = (model: string) => post(`/v2/repository/models/${model}/load`, undefined, "error");
const one = { inputs: [input("IN", "FP32", [1], [1.5])] };

const accepted = new Set(["completes_no_policy", "completes_policy", "completes_optional"]);
const differences: Readonly<Record<string, Difference>> = {
  completes_unknown_type: { row: "completed-nonsense", status: 400, includes: ["unknown DataType", "FP32"] },
  completes_text_dims: {
    row: "completed-nonsense",
    status: 400,
    includes: ["unable to auto-complete the configuration"],
  },
};

export const programs: readonly Case[] = Object.keys(programModels)
  .filter((name) => !name.startsWith("step_"))
  .map((name): Case => {
    const difference = differences[name];
    const step = difference === undefined ? load(name) : differs(load(name), difference);
    const then = accepted.has(name)
      ? [get(`/v2/models/${name}/config`, "map")]
      : name.startsWith("answers_")
        ? [infer(name, one, "error")]
        : [];
    return { name: `program: ${name}`, fixture: "programs", steps: [step, ...then] };
  });
