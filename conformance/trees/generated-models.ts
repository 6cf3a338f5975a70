import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";

/** A model, rows for it, and what the library that trained it predicts for them. */
export interface TreeCase {
  readonly name: string;
  readonly features: number;
  readonly columns: number;
  readonly rowCount: number;
  /** Number of rows at the end that lie at thresholds of the model, or one float next to them. */
  readonly edgeCount: number;
  readonly rows: Float32Array;
  /** Expected numbers, `columns` for each row. */
  readonly expected: Float64Array;
  /**
   * Expected contributions: for each row and output one for each feature, and the remainder; null if the model does not
   * return them.
   */
  readonly contributions: Float64Array | null;
}

export interface GeneratedModels extends AsyncDisposable {
  readonly repository: string;
  readonly cases: readonly TreeCase[];
}

const program = fileURLToPath(new URL("generate.py", import.meta.url));

/** Trains the models with the real libraries, from fixed seeds. */
export async function generateModels(): Promise<GeneratedModels> {
  const directory = await mkdtemp(join(tmpdir(), "galatea-trees-"));
  for (const [name, flags] of [
    ["trees", []],
    ["trees-before", ["--before"]],
  ] as const) {
    const { python } = await ensureEnvironment(cacheDirectory(process.env), name);
    await promisify(execFile)(python, ["-W", "ignore", program, directory, ...flags], { maxBuffer: 1 << 24 });
  }
  const names = (await readdir(join(directory, "cases"))).filter((name) => name.endsWith(".json")).sort();
  return {
    repository: join(directory, "repository"),
    cases: await Promise.all(names.map((name) => readCase(join(directory, "cases"), name.slice(0, -".json".length)))),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  };
}

async function readCase(directory: string, name: string): Promise<TreeCase> {
  const at = (ending: string) => join(directory, `${name}.${ending}`);
  const about = JSON.parse(await readFile(at("json"), "utf8")) as Record<
    "rows" | "features" | "columns" | "edges",
    number
  >;
  const [rows, expected] = [await readFile(at("rows")), await readFile(at("expected"))];
  const contributions = existsSync(at("contributions")) ? await readFile(at("contributions")) : null;
  return {
    name,
    features: about.features,
    columns: about.columns,
    rowCount: about.rows,
    edgeCount: about.edges,
    rows: new Float32Array(Uint8Array.from(rows).buffer),
    expected: new Float64Array(Uint8Array.from(expected).buffer),
    contributions: contributions === null ? null : new Float64Array(Uint8Array.from(contributions).buffer),
  };
}
