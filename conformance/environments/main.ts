/**
 * Creates test environments: `node conformance/environments/main.ts [--cache DIR] [oracle|clients|javascript-sdk ...]`.
 * Prints the path of each Python and of each folder of npm packages.
 */
import { parseArgs } from "node:util";
import { cacheDirectory, ensureEnvironment, ensurePackages, environmentNames, packageSetNames } from "./index.ts";

const { values, positionals } = parseArgs({ options: { cache: { type: "string" } }, allowPositionals: true });
const directory = values.cache ?? cacheDirectory(process.env);
const known: readonly string[] = [...environmentNames, ...packageSetNames];
const unknown = positionals.filter((name) => !known.includes(name));
const isDesired = (name: string) => positionals.length === 0 || positionals.includes(name);
const options = { progress: (line: string) => console.error(line) };
if (unknown.length > 0) {
  console.error(`unknown environment: ${unknown.join(", ")}; known: ${known.join(", ")}`);
  process.exitCode = 1;
} else {
  for (const name of environmentNames.filter(isDesired)) {
    const { python } = await ensureEnvironment(directory, name, options);
    console.log(`${name} ${python}`);
  }
  for (const name of packageSetNames.filter(isDesired)) {
    console.log(`${name} ${await ensurePackages(directory, name, options)}`);
  }
}
