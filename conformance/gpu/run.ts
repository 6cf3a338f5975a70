/**
 * Runs the checks that need a GPU on a machine that has one: node conformance/gpu/run.ts [--python <interpreter with
 * TensorRT's package>]. Date, machine and figures go to bench/results. A check that cannot run prints what is missing.
 * The exit code is 1 if a check failed, or if none could run.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { writeFigures } from "../results.ts";
import { gpuRows, type GpuRow } from "./rows.ts";

const { values } = parseArgs({
  options: { python: { type: "string" }, device: { type: "string", default: "/dev/nvidiactl" } },
});
const root = await mkdtemp(join(tmpdir(), "galatea-gpu-run-"));
try {
  const rows: Record<string, object> = {};
  for (const [index, row] of gpuRows.entries()) rows[row.name] = await tried(row, join(root, String(index)));
  const outcomes = Object.values(rows);
  if (outcomes.some((one) => !("missing" in one))) {
    const { stdout } = await promisify(execFile)("nvidia-smi", [
      "--query-gpu=name,driver_version",
      "--format=csv,noheader",
    ]);
    console.log(`written to ${await writeFigures("gpu", { gpus: stdout.trim().split("\n"), rows })}`);
  } else console.log("no check has run, so no figures are written");
  if (!outcomes.some((one) => "figures" in one) || outcomes.some((one) => "failed" in one)) process.exitCode = 1;
} finally {
  await rm(root, { recursive: true, force: true });
}

async function tried(row: GpuRow, directory: string): Promise<object> {
  await mkdir(directory);
  const run = { python: values.python ?? null, device: values.device, directory };
  const missing = await row.missing(run);
  if (missing.length > 0) {
    console.log(`not run  ${row.name}: missing ${missing.join(", ")}`);
    return { missing };
  }
  try {
    const figures = await row.figures(run);
    console.log(`ok       ${row.name}: ${JSON.stringify(figures)}`);
    return { figures };
  } catch (error) {
    console.log(`FAILED   ${row.name}: ${(error as Error).message}`);
    return { failed: (error as Error).message };
  }
}
