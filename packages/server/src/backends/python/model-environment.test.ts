/** Imports and environment variables of one model must not affect another model's variables. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { infer, floats, floatsOf, model, openFixture, pythonEnv, until } from "./python-fixture.ts";
import { isPreImportAllowed } from "./pre-imports.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const text = (output: { data: Uint8Array }) => Buffer.from(output.data).subarray(4).toString();
const saying = (expression: string, before = "") =>
  `${before}${model(`out = np.array([repr(${expression})], dtype=object)\nreturn [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)]) for r in requests]`)}`;
const config = `backend: "python" input [{ name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }] output [{ name: "OUT" data_type: TYPE_STRING dims: [ -1 ] }]`;
const one = () => [floats("IN", [1])];

/** A library that reads a variable when it is imported, in a temporary directory. */
async function withLibrary() {
  const directory = await mkdtemp(join(tmpdir(), "galatea-library-"));
  await writeFile(join(directory, "reads_at_import.py"), 'import os\nMODE = os.environ.get("READS_MODE", "unset")\n');
  return { directory, [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) };
}

test("a model's variables reach a library that another model imported before, in any order of loads", async () => {
  await using fixture = await openFixture();
  // zoneinfo of the standard library reads PYTHONTZPATH when it is imported.
  const zones = "__import__('zoneinfo').TZPATH";
  await using plain = await fixture.load("plain", saying(zones, "import zoneinfo\n"), config);
  await using other = await fixture.load("blind", saying("1", "import decimal, uuid\n"), config);
  await infer(other, one());
  // From now on, workers are forked from a zygote that has imported the allowed modules among those of the first two models.
  await until(() => fixture.log.filter((line) => line.includes("zygote ready")).length >= 2);
  for (let round = 0; round < 3; round++) {
    const source = saying(zones, 'import os\nos.environ["PYTHONTZPATH"] = "/somewhere"\nimport zoneinfo\n');
    await using setting = await fixture.load(`setting_${round}`, source, config);
    assert.equal(text((await infer(setting, one())).outputs[0]!), "('/somewhere',)");
  }
  assert.notEqual(text((await infer(plain, one())).outputs[0]!), "('/somewhere',)");
});

test("modules listed by the operator are preloaded once a model has imported them", async () => {
  await using fixture = await openFixture({ preImports: ["zoneinfo"] });
  const zones = "__import__('zoneinfo').TZPATH";
  await using plain = await fixture.load("plain", saying(zones, "import zoneinfo\n"), config);
  const here = text((await infer(plain, one())).outputs[0]!);
  const isAhead = async (round: number) => {
    const source = saying("AHEAD", 'import sys\nAHEAD = "zoneinfo" in sys.modules\n');
    await using loaded = await fixture.load(`asking_${round}`, source, config);
    return text((await infer(loaded, one())).outputs[0]!) === "True";
  };
  let round = 0;
  const deadline = AbortSignal.timeout(testTimeoutMs);
  while (!(await isAhead(round++))) deadline.throwIfAborted();
  assert.match(here, /zoneinfo|\(/);
});

test("thread variables and TOKENIZERS_PARALLELISM have the operator's exported value, or are absent", async () => {
  const reported =
    "[__import__('os').environ.get(n) for n in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'NUMEXPR_NUM_THREADS', 'TOKENIZERS_PARALLELISM')]";
  await using absent = await openFixture();
  await using first = await absent.load("told", saying(reported), config);
  assert.equal(text((await infer(first, one())).outputs[0]!), "[None, None, None, None, None]");
  const exported = { ...pythonEnv, OMP_NUM_THREADS: "3", TOKENIZERS_PARALLELISM: "true" };
  await using input = await openFixture({ pythonEnv: exported });
  await using second = await input.load("told", saying(reported), config);
  assert.equal(text((await infer(second, one())).outputs[0]!), "['3', None, None, None, 'true']");
});

/** Number of threads of the worker after a matrix product that is large enough to use several threads. */
const threads = "(lambda a: (a @ a, len(__import__('os').listdir('/proc/self/task'))))(np.ones((512, 512)))[1]";

test("numpy has one thread, or the number set by the operator's or the model's variables", async () => {
  await using plain = await openFixture();
  await using alone = await plain.load("alone", saying(threads), config);
  assert.equal(text((await infer(alone, one())).outputs[0]!), "1");
  const source = saying(threads, 'import os\nos.environ["OPENBLAS_NUM_THREADS"] = "3"\n');
  await using own = await plain.load("own", source, config);
  assert.equal(text((await infer(own, one())).outputs[0]!), "3");
  await using input = await openFixture({ pythonEnv: { ...pythonEnv, OMP_NUM_THREADS: "2" } });
  await using second = await input.load("given", saying(threads), config);
  assert.equal(text((await infer(second, one())).outputs[0]!), "2");
});

test("modules preloaded by default read no environment variable at import", async () => {
  await using library = await withLibrary();
  const program = `import importlib, os, sys
seen = []
kind = type(os.environ)
get = kind.__getitem__
kind.__getitem__ = lambda self, key: (seen.append(key), get(self, key))[1]
for name in sys.argv[1].split():
    try:
        importlib.import_module(name)
    except ImportError:
        pass
print(" ".join(seen))`;
  const run = promisify(execFile);
  const names =
    "abc argparse asyncio collections dataclasses json logging random re tempfile threading uuid xml.etree.ElementTree zipfile";
  const blind = names.split(" ").filter((name) => isPreImportAllowed(name, new Set()));
  assert.ok(blind.length > 10 && !blind.includes("asyncio"));
  const env = { ...pythonEnv, PYTHONPATH: library.directory };
  const reads = async (modules: string) => (await run("python3", ["-c", program, modules], { env })).stdout.trim();
  assert.equal(await reads("reads_at_import"), "READS_MODE");
  assert.equal(await reads(blind.join(" ")), "");
});

test("a zygote with numpy and learned modules forks with one thread", async () => {
  await using fixture = await openFixture();
  await using first = await fixture.load("learns", saying("1", "import decimal, uuid, tempfile, logging\n"), config);
  assert.deepEqual(text((await infer(first, one())).outputs[0]!), "1");
  await until(() => fixture.log.some((line) => /zygote ready: .* 1 thread\(s\)/.test(line)));
  assert.ok(!fixture.log.some((line) => /starts threads/.test(line)));
  await using second = await fixture.load(
    "echoes",
    model('return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.ones(2, np.float32))]) for r in requests]'),
  );
  assert.deepEqual(floatsOf((await infer(second, one())).outputs[0]!), [1, 1]);
});
