/**
 * Predictions equal XGBoost's to the last bit, in the `fil` backend over HTTP and in the scorer of SageMaker's XGBoost
 * container.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { readXgboostScorer } from "@galatea/runtimes/trees";
import { cacheDirectory, ensureEnvironment, startGalatea } from "../environments/index.ts";
import { requestTrees } from "./tree-request.ts";

const program = fileURLToPath(new URL("xgboost_bits.py", import.meta.url));
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-bits-"));
});
after(() => rm(directory, { recursive: true, force: true }));

const bitsOf = (floats: Float32Array) => Buffer.from(floats.buffer, floats.byteOffset, floats.byteLength);

for (const environment of ["trees", "trees-before"] as const) {
  test(`10,000 rows get XGBoost's predictions to the last bit for every kind of model, with the library of '${environment}'`, async () => {
    const created = await mkdtemp(join(directory, "made-"));
    const { python } = await ensureEnvironment(cacheDirectory(process.env), environment);
    const { stdout } = await promisify(execFile)(python, ["-W", "ignore", program, created]);
    const { features, columns } = JSON.parse(stdout) as { features: number; columns: Record<string, number> };
    const rows = new Float32Array(Uint8Array.from(await readFile(join(created, "rows"))).buffer);
    const server = await startGalatea({ repositories: [join(created, "repository")] });
    try {
      for (const name of Object.keys(columns)) {
        const predicted = await readFile(join(created, `${name}.predicted`));
        const file = await readFile(join(created, "repository", name, "1", "xgboost.ubj"));
        const scorer = readXgboostScorer(file, "xgboost_ubj", { treesMax: 0 });
        assert.ok(bitsOf(scorer.score(rows)).equals(predicted), `${name} by the scorer`);
        const { values } = await requestTrees(server.httpPort, name, rows, features);
        assert.ok(bitsOf(values).equals(predicted), `${name} over HTTP`);
        // Few rows are evaluated through eight trees at a time, which adds in the same order.
        const one = await requestTrees(server.httpPort, name, rows.slice(0, features), features);
        assert.ok(bitsOf(one.values).equals(predicted.subarray(0, 4 * (columns[name] ?? 1))), `${name}, one row`);
      }
    } finally {
      await server.stop();
    }
  });
}
