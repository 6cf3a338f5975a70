/** Models own their inputs. Each of these models overwrites them, and returns what it saw before. */
import type { Case } from "../case.ts";
import { binary, binaryInput, infer, input, strings } from "../requests.ts";

const parameters = { mark: "x", number: 7 };

/** Sizes below and above the limit of inline data in a message, and one of many pages. */
const sizes = [4, 3000, 60_000] as const;

const header = (
  [x, text]: readonly [string, string],
  count: number,
  textCount: number,
  outputs: readonly string[],
) => ({
  parameters,
  inputs: [binaryInput(x, "FP32", [count], 4 * count), binaryInput(text, "BYTES", [textCount], 7 * textCount)],
  outputs: outputs.map((name) => ({ name })),
});

const buffers = (count: number, textCount: number) => [
  Buffer.from(new Float32Array(count).fill(2).buffer),
  strings(...Array.from({ length: textCount }, () => "abc")),
];

const spoilt = (model: string, count: number, outputs: readonly string[]): Case => {
  const inputs = model === "spoils" ? (["X", "TEXT"] as const) : (["A", "T"] as const);
  const textCount = Math.max(2, count / 4);
  const body = header(inputs, count, textCount, outputs);
  return {
    name: `owned inputs: ${model} with ${count} elements, answers ${outputs.join(", ")}`,
    fixture: "main",
    // The request is sent twice: the second call overwrites data that was kept from the first.
    steps: [0, 1].map(() => binary(model, body, buffers(count, textCount), model === "spoils" ? "json" : "ensemble")),
  };
};

const saws = ["SAW1", "SAW2", "SAW3", "SAW4", "SAW5"];

export const ownedInputs: readonly Case[] = [
  ...sizes.map((count) => spoilt("spoils", count, ["SAW"])),
  ...sizes.map((count) => spoilt("spoilt_fan", count, saws)),
  ...[4, 1500].map((count) => spoilt("spoils", count, ["SAW", "SEEN", "SPOILT", "TEXTS"])),
  ...[4, 1500].map((count) => spoilt("spoilt_open", count, [...saws, "SEEN1", "SPOILT1", "TEXTS1", "SEEN2"])),
  {
    name: "owned inputs: as JSON",
    fixture: "main",
    steps: [
      infer(
        "spoilt_fan",
        { inputs: [input("A", "FP32", [3], [1, 2, 3]), input("T", "BYTES", [2], ["a", "b"])] },
        "ensemble",
      ),
    ],
  },
];
