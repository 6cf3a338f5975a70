import { globSync } from "node:fs";
import { root } from "../../scripts/source-tree.ts";

/** The documents whose blocks are run, by their paths from the repository's root. */
export const documents: readonly string[] = [
  "README.md",
  ...globSync("docs/**/*.md", { cwd: root, exclude: (path) => path.endsWith("node_modules") }).toSorted(),
];
