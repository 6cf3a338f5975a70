import { globSync } from "node:fs";
import { root } from "./source-tree.ts";

const everywhere = ["conformance/**/*.test.ts", "examples/**/*.test.ts", "bench/*.test.ts"];

/** Suites that run models in frameworks, whose packages are gigabytes: `npm test -- --core` leaves them out. */
const inFrameworks = ["conformance/frameworks/**", "examples/resnet50/**"];

/** The suites that `npm test` runs, by their paths from the repository's root. */
export function suitePaths({ core }: { readonly core: boolean }): readonly string[] {
  return globSync(everywhere, { cwd: root, exclude: core ? inFrameworks : [] }).toSorted();
}
