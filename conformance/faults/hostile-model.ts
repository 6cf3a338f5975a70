import { readdirSync, readFileSync } from "node:fs";
import { faultyConfig } from "./faulty-model.ts";
import { tarball } from "./tarball.ts";

const programs = new URL("models/hostile/", import.meta.url);

/** Returns an archive of the model in `models/hostile`, which attempts on request what no tenant is permitted to do. */
export function hostileArchive(weights: Uint8Array): Buffer {
  return tarball([
    { path: "m/config.pbtxt", body: faultyConfig },
    ...readdirSync(programs)
      .filter((name) => name.endsWith(".py"))
      .map((name) => ({ path: `m/1/${name}`, body: readFileSync(new URL(name, programs)) })),
    { path: "m/1/weights.bin", body: weights },
  ]);
}
