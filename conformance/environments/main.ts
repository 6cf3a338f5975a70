/** Makes test environments: `node conformance/environments/main.ts [--cache DIR] [oracle|clients|ruff ...]`; prints each Python's path. */
import { parseArgs } from "node:util";
import { cacheDirectory, ensureEnvironment, environmentNames, type EnvironmentName } from "./index.ts";

const { values, positionals } = parseArgs({ options: { cache: { type: "string" } }, allowPositionals: true });
const directory = values.cache ?? cacheDirectory(process.env);
const unknown = positionals.filter((name) => !environmentNames.includes(name as EnvironmentName));
if (unknown.length > 0) {
  console.error(`unknown environment: ${unknown.join(", ")}; there are ${environmentNames.join(", ")}`);
  process.exitCode = 1;
} else {
  for (const name of positionals.length > 0 ? (positionals as EnvironmentName[]) : environmentNames) {
    const environment = await ensureEnvironment(directory, name, { progress: (line) => console.error(line) });
    console.log(`${name} ${environment.python}`);
  }
}
