import type { Case, Step } from "../case.ts";
import { warmModels } from "../warm-models.ts";
import { differs, get, infer, input, post } from "../requests.ts";

const load = (model: string): Step => post(`/v2/repository/models/${model}/load`, undefined, "error");
const seen = (model: string): Step => {
  const datatype = model.includes("strings") ? "BYTES" : "FP32";
  const data = datatype === "BYTES" ? ["x", "y"] : [1, 2];
  return infer(model, { inputs: [input("IN", datatype, model === "without_batching" ? [2] : [1, 2], data)] });
};
const statistics = (model: string): Step => get(`/v2/models/${model}/stats`, "statistics");

/** Returns the steps of a case. Statistics are requested late, because Triton updates them after the response. */
const stepsOf = (model: string): Step[] =>
  model === "counted" ? [load(model), statistics(model), seen(model)] : [load(model), seen(model)];

const names = Object.keys(warmModels);
const loaded = names.slice(0, names.indexOf("failing"));

/** Samples that often crash Triton, and our error texts for them. */
const deadly: Readonly<Record<string, string>> = {
  too_large: "failed to run warmup sample 's': batch size 8 for 'too_large_0_0', max allowed is 4; ",
  failing: "failed to run warmup sample 'a': not in the mood; not in the mood; ",
};

/** The warm-up requests that a model executes before its first request, and errors that keep it from loading. */
export const warmUps: readonly Case[] = names.map((model): Case => {
  const name = `warm-up: ${model.replaceAll("_", " ")}`;
  if (loaded.includes(model)) return { name, fixture: "warm", steps: stepsOf(model) };
  const step = load(model);
  const text = deadly[model];
  if (text === undefined) return { name, fixture: "warm", steps: [step] };
  return {
    name,
    fixture: "warm",
    steps: [differs(step, { row: "warm-up-reasons", status: 400, includes: [text], notAsked: true })],
  };
});
