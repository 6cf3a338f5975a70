import assert from "node:assert/strict";
import { copyFile, mkdtemp, readdir, rm, symlink, writeFile, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { create } from "tar";
import { delay, InferenceError, systemClock } from "@galatea/base";
import { releaseResponse, type InferenceResponse, DeferredResponses } from "../../inference/index.ts";
import { floats, floatsOf, inArena, oneInOneOut, openFixture, pythonEnv, request } from "./python-fixture.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const header = "import triton_python_backend_utils as pb_utils\nimport numpy as np\n";

test("a compromised worker is ended at its first malformed record; its requests fail, the server is unharmed", async () => {
  await using fixture = await openFixture();
  // Attacks of a hostile model on its worker's socket: each body sends one forged frame during an execution.
  const forged = [
    "wire.frame(wire.RESULT, bytes(8), 1, 1)",
    "wire.encode_result(1, [], [('outputs', '', [(9, 11, (1,), wire.INLINE, 0, bytes(4))])], (0, 0, 0))",
    "wire.encode_result(1, [], [('outputs', '', [(0, 11, (1,), 77, 0, 4)])], (0, 0, 0))",
    "wire.encode_result(1, [], [('outputs', '', [(0, 11, (2**40,), 1, 0, 2**42)])], (0, 0, 0))",
    "wire.encode_result(1, [], [('outputs', '', [(0, 11, (9,), wire.INLINE, 0, bytes(4))])], (0, 0, 0))",
    "wire.encode_result(1, [5], [('outputs', '', [])], (0, 0, 0))",
    "wire.encode_result(1, [], [], (0, 0, 0))",
    "wire.encode_released([1, 1])",
    "wire.encode_space_request(999, [8])",
    "bytes([255]) * 64",
    "wire.frame(200)",
  ];
  for (const [index, frame] of forged.entries()) {
    const source = `${header}from galatea_worker import current_worker, wire
import time
class TritonPythonModel:
    def execute(self, requests):
        current_worker._worker.channel.send(${frame})
        time.sleep(1000)
`;
    const loaded = await fixture.load(`forger${index}`, source);
    const input = inArena(
      fixture.arena,
      floats(
        "IN",
        Array.from({ length: 5000 }, () => 1),
      ),
    );
    const { outcomes } = await loaded.instances[0]!.execute([request([input])]);
    input.block!.release();
    assert.ok(outcomes[0] instanceof InferenceError, frame);
    assert.match(
      outcomes[0].message,
      /is not healthy\. \(signal SIGKILL, ended because of: malformed record from a worker: /,
      frame,
    );
    await loaded[Symbol.asyncDispose]();
    assert.equal(fixture.arena.usedBytes, 0, frame);
  }
});

test("a full arena fails the request that needed it with the documented error, and later requests succeed", async () => {
  await using fixture = await openFixture();
  const source = `${header}class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros(int(r.inputs()[0].as_numpy()[0]), np.float32))]) for r in requests]
`;
  await using loaded = await fixture.load("large", source);
  const call = async (count: number) =>
    (await loaded.instances[0]!.execute([request([floats("IN", [count])])])).outcomes[0]!;
  const refused = await call(2 ** 28 + 2 ** 20);
  assert.ok(refused instanceof InferenceError);
  assert.match(refused.message, /shared memory arena is full: \d+ bytes requested/);
  const served = (await call(2 ** 22)) as InferenceResponse;
  assert.equal(served.outputs[0]!.data.byteLength, 2 ** 24);
  releaseResponse(served);
});

test("modules that a model imported are preloaded for the next one", async () => {
  await using fixture = await openFixture();
  const source = `${header}import sys
ahead = "statistics" in sys.modules
import statistics
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([ahead], np.float32))]) for r in requests]
`;
  const ahead = async (name: string) => {
    await using loaded = await fixture.load(name, source);
    const { outcomes } = await loaded.instances[0]!.execute([request([floats("IN", [1])])]);
    return floatsOf((outcomes[0] as InferenceResponse).outputs[0]!)[0];
  };
  assert.equal(await ahead("first"), 0);
  const signal = AbortSignal.timeout(testTimeoutMs);
  for (let round = 0; (await ahead(`later${round}`)) === 0; round++) await delay(systemClock, 50, signal);
});

test("a packed environment is unpacked once and its interpreter runs the model", async () => {
  const directory = await mkdtemp(join(tmpdir(), "galatea-env-"));
  try {
    const inherited = { LD_LIBRARY_PATH: "/opt/inherited" };
    await using fixture = await openFixture({ pythonEnv: { ...pythonEnv, ...inherited } });
    // A minimal conda-pack archive: an interpreter, an activation script, and packages.
    const { source } = await fixture.source("packed", "");
    const environment = join(directory, "packed");
    const python = await readInterpreter();
    await mkdir(join(environment, "bin"), { recursive: true });
    await copyFile(python.executable, join(environment, "bin", "python"));
    await writeFile(join(environment, "pyvenv.cfg"), `home = ${python.home}\n`);
    await writeFile(join(environment, "bin", "activate"), `export ACTIVATED=yes PYTHONPATH=${python.packages}\n`);
    await create({ gzip: true, cwd: environment, file: join(source.modelDirectory, "env.tar.gz") }, [
      "bin",
      "pyvenv.cfg",
    ]);
    const modelPy = `${header}import os, sys
class TritonPythonModel:
    def execute(self, requests):
        text = " ".join([os.environ["ACTIVATED"], sys.prefix, os.environ["LD_LIBRARY_PATH"]])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text], object))]) for r in requests]
`;
    for (const path of ["$$TRITON_MODEL_DIRECTORY/env.tar.gz", "env.tar.gz"]) {
      const config = `${oneInOneOut().replace("TYPE_FP32 dims: [ -1 ] }]\n", "TYPE_STRING dims: [ -1 ] }]\n")}
parameters { key: "EXECUTION_ENV_PATH" value: { string_value: "${path}" } }`;
      await using loaded = await fixture.load("packed", modelPy, config);
      const { outcomes } = await loaded.instances[0]!.execute([request([floats("IN", [1])])]);
      const [outcome] = outcomes;
      if (outcome instanceof InferenceError) throw outcome;
      assert.ok(outcome !== undefined && !(outcome instanceof DeferredResponses));
      const text = Buffer.from(outcome.outputs[0]!.data).subarray(4).toString();
      const [activated, prefix = "", libraries] = text.split(" ");
      assert.equal(activated, "yes");
      assert.match(prefix, /\/environments\/[0-9a-f]{64}\/files$/);
      assert.equal(libraries, `${prefix}/lib:/opt/inherited`);
      assert.equal((await readdir(join(prefix, "..", ".."))).length, 1);
    }
    await assert.rejects(
      fixture.load(
        "missing",
        modelPy,
        `${oneInOneOut()} parameters { key: "EXECUTION_ENV_PATH" value: { string_value: "gone.tar.gz" } }`,
      ),
      { code: "INVALID_ARG", message: /^EXECUTION_ENV_PATH 'gone\.tar\.gz' does not exist: / },
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("an unpacked environment remains while a model uses it, and is deleted when others need the space", async () => {
  await using fixture = await openFixture({ environmentBytesMax: 2 ** 20 });
  const python = await readInterpreter();
  const modelPy = `${header}class TritonPythonModel:
    def execute(self, requests):
        import this
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
`;
  const unpacked = async () => (await readdir(join(fixture.directory, "environments"))).length;
  const load = async (name: string) => {
    const { source } = await fixture.source(name, "");
    const environment = join(fixture.directory, `packed-${name}`);
    await mkdir(join(environment, "bin"), { recursive: true });
    await symlink(python.executable, join(environment, "bin", "python"));
    await writeFile(join(environment, "pyvenv.cfg"), `home = ${python.home}\n`);
    await writeFile(join(environment, "bin", "activate"), `export PYTHONPATH=${python.packages} NAME=${name}\n`);
    // Two environments of this size exceed the limit.
    await writeFile(join(environment, "data"), Buffer.alloc(600_000));
    const file = join(source.modelDirectory, "env.tar.gz");
    await create({ gzip: true, cwd: environment, file }, ["bin", "pyvenv.cfg", "data"]);
    const parameter = `parameters { key: "EXECUTION_ENV_PATH" value: { string_value: "env.tar.gz" } }`;
    return await fixture.load(name, modelPy, `${oneInOneOut()} ${parameter}`);
  };
  const first = await load("first");
  const second = await load("second");
  assert.equal(await unpacked(), 2);
  await second[Symbol.asyncDispose]();
  await using _third = await load("third");
  assert.equal(await unpacked(), 2);
  // The model can still import a module that it has not imported before, because its leased environment was not deleted.
  const { outcomes } = await first.instances[0]!.execute([request([floats("IN", [1])])]);
  assert.deepEqual(floatsOf((outcomes[0] as InferenceResponse).outputs[0]!), [1]);
  await first[Symbol.asyncDispose]();
  await using _fourth = await load("fourth");
  assert.equal(await unpacked(), 2);
});

/** Returns the base interpreter of the test environment, and the directory of that environment's packages. */
async function readInterpreter(): Promise<{ executable: string; home: string; packages: string }> {
  await using fixture = await openFixture();
  const loaded = await fixture.load(
    "where",
    `${header}import sys
print("where", sys._base_executable, sys.base_prefix, np.__path__[0])
class TritonPythonModel:
    def execute(self, requests): return []
`,
  );
  await loaded[Symbol.asyncDispose]();
  const [, , executable, prefix, numpy] = fixture.log.find((line) => line.startsWith("printed: where"))!.split(" ");
  return { executable: executable!, home: join(prefix!, "bin"), packages: join(numpy!, "..") };
}
