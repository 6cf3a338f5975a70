import { readdirSync, readFileSync } from "node:fs";
import { faultyConfig } from "./faulty-model.ts";
import { tarball } from "./tarball.ts";

const programs = new URL("models/hostile/", import.meta.url);

/** An archive of the model in `models/hostile`, which tries on request what no tenant may do. */
export function hostileArchive(weights: Uint8Array): Buffer {
  return tarball([
    { path: "m/config.pbtxt", body: faultyConfig },
    ...readdirSync(programs)
      .filter((name) => name.endsWith(".py"))
      .map((name) => ({ path: `m/1/${name}`, body: readFileSync(new URL(name, programs)) })),
    { path: "m/1/weights.bin", body: weights },
  ]);
}
