import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { chainOf, echoConfig, EngineFixture, failing, requestTo } from "./engine-fixtures.ts";
import { outputLabels } from "./model-view.ts";

const floats = echoConfig.replaceAll("INT32", "FP32");
let bench: EngineFixture;

beforeEach(() => {
  bench = new EngineFixture();
  Object.assign(bench.models, { echo: echoConfig, echo2: echoConfig, chain: chainOf(["echo", "echo2"]) });
  bench.models["outer"] = chainOf(["chain"]);
});

afterEach(() => bench[Symbol.asyncDispose]());

/** A gate that blocks executions of a model until it is opened. */
function hold(model: string): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  bench.backend.pending.set(model, promise);
  return resolve;
}

const ticks = async (count = 20) => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};

it("a version that a reload replaces is logged when it has ended, and the new one keeps serving", async () => {
  await bench.load("echo");
  const open = hold("echo");
  const response = bench.respond(requestTo("echo", [7]));
  await bench.load("echo");
  await ticks();
  const unloaded = () => bench.infos.filter((line) => line === "successfully unloaded 'echo' version 1").length;
  assert.equal(unloaded(), 0);
  open();
  await response;
  await ticks();
  assert.equal(unloaded(), 1);
  assert.deepEqual(await bench.states(), { "echo/1": "READY" });
});

describe("a load that fails", () => {
  it("keeps the loaded version, and the ensembles that use it, when a newer version is broken", async () => {
    await bench.load("chain");
    bench.versions["echo"] = [1, 2];
    bench.models["echo"] = failing(echoConfig, 2);
    await assert.rejects(bench.load("echo"), {
      code: "INVALID_ARG",
      message: "load failed for model 'echo': version 2 is at UNAVAILABLE state: Internal: ValueError: no;\n",
    });
    assert.deepEqual(await bench.respond(requestTo("echo", [7])), { name: "Y", version: "1", values: [7] });
    assert.deepEqual((await bench.respond(requestTo("chain", [7]))).values, [7]);
    assert.deepEqual(await bench.states(), {
      "chain/1": "READY",
      "echo/1": "READY",
      "echo/2": "UNAVAILABLE Internal: ValueError: no",
      "echo2/1": "READY",
    });
  });

  it("loads none of its versions, names every broken one, and releases the memory of the others", async () => {
    const all = `version_policy { all {} } ${echoConfig}`;
    await bench.load("echo");
    bench.versions["echo"] = [1, 2, 3];
    bench.models["echo"] = failing(all, 3);
    await assert.rejects(
      bench.load("echo"),
      /^InferenceError: load failed for model 'echo': version 3 is at [^;]*;\n$/,
    );
    await ticks();
    assert.deepEqual(await bench.states(), {
      "echo/1": "READY",
      "echo/2": "UNAVAILABLE unloaded",
      "echo/3": "UNAVAILABLE Internal: ValueError: no",
    });
    assert.equal(bench.backend.loadedCount, 1);
    assert.equal(bench.engine.memory().usedBytes, 1000);
    bench.models["echo"] = failing(all);
    await assert.rejects(bench.load("echo"), /version 1 is at [^;]*;version 2 is at [^;]*;version 3 is at [^;]*;\n$/);
    assert.equal((await bench.respond(requestTo("echo", [1]))).version, "1");
  });

  it("reports that no version is selected, keeps the loaded versions, and lists no model that was never loaded", async () => {
    const none = `version_policy { specific { versions: 9 } } ${echoConfig}`;
    const message =
      "load failed for model 'echo': at least one version must be available under the version policy of model 'echo'\n";
    bench.models["echo"] = none;
    await assert.rejects(bench.load("echo"), { code: "INVALID_ARG", message });
    assert.equal(
      (await bench.engine.repositoryIndex(false)).find((row) => row.name === "echo"),
      undefined,
    );
    assert.equal(bench.engine.ready, false);
    await assert.rejects(bench.respond(requestTo("echo", [1])), /'echo' has no available versions/);
    bench.models["echo"] = echoConfig;
    await bench.load("echo");
    bench.models["echo"] = none;
    await assert.rejects(bench.load("echo"), { code: "INVALID_ARG", message });
    assert.deepEqual((await bench.respond(requestTo("echo", [1]))).values, [1]);
    assert.equal(bench.engine.ready, true);
  });

  it("does not add an unknown name to the repository index", async () => {
    await assert.rejects(bench.load("zzz"), /failed to load 'zzz'/);
    await assert.rejects(bench.respond(requestTo("zzz", [1])), {
      code: "NOT_FOUND",
      message: "Request for unknown model: 'zzz' is not found",
    });
    assert.equal(bench.engine.ready, true);
  });
});

describe("an ensemble", () => {
  it("is unloaded with its step, leaves the server ready, and is loaded again with the step, as ensembles over it are", async () => {
    await bench.load("outer");
    await bench.unload("echo");
    await assert.rejects(bench.respond(requestTo("outer", [1])), /'outer' has no available versions/);
    await ticks();
    assert.equal(bench.engine.ready, true);
    assert.deepEqual(await bench.states(), {
      "chain/1": "UNAVAILABLE unloaded",
      "echo/1": "UNAVAILABLE unloaded",
      "echo2/1": "READY",
      "outer/1": "UNAVAILABLE unloaded",
    });
    await bench.load("echo");
    assert.deepEqual((await bench.respond(requestTo("outer", [4]))).values, [4]);
  });

  it("stays unloaded if it was unloaded by name, before its step or after it", async () => {
    for (const first of ["chain", "echo"]) {
      await bench.load("chain");
      await bench.unload(first);
      await bench.unload(first === "chain" ? "echo" : "chain");
      await bench.load("echo");
      await assert.rejects(bench.respond(requestTo("chain", [1])), /'chain' has no available versions/);
    }
  });

  it("that could not be loaded is loaded with its missing step, and does not affect readiness once it is unloaded", async () => {
    bench.models["echo"] = failing(echoConfig);
    await assert.rejects(bench.load("outer"), /which has no loaded version/);
    bench.models["echo"] = echoConfig;
    await bench.load("echo");
    assert.deepEqual((await bench.respond(requestTo("outer", [4]))).values, [4]);
    bench.models["orphan"] = chainOf(["nobody"]);
    await assert.rejects(bench.load("orphan"), /not available or ambiguous: nobody/);
    assert.equal(bench.engine.ready, false);
    await bench.unload("orphan");
    assert.equal(bench.engine.ready, true);
    bench.models["nobody"] = echoConfig;
    await bench.load("nobody");
    await assert.rejects(bench.respond(requestTo("orphan", [1])), /'orphan' has no available versions/);
  });

  it("that is loaded later has its labels, and stays unloaded if its own configuration is invalid", async () => {
    const labelled = chainOf(["echo"]).replace('name: "Y"', 'name: "Y" label_filename: "labels.txt"');
    bench.models["echo"] = failing(echoConfig);
    for (const isWritten of [false, true]) {
      bench.models["chain"] = labelled;
      if (isWritten) writeFileSync(join(bench.directory, "chain", "labels.txt"), "zero\none\n");
      await assert.rejects(bench.load("chain"), /which has no loaded version/);
      bench.models["echo"] = echoConfig;
      await bench.load("echo");
      if (isWritten) {
        using model = bench.hold("chain");
        assert.deepEqual(outputLabels(model.view, "Y"), ["zero", "one"]);
      } else assert.throws(() => bench.hold("chain"), /'chain' has no available versions/);
      await bench.unload("echo");
      bench.models["echo"] = failing(echoConfig);
    }
  });

  it("is checked again when one of its steps changes", async () => {
    await bench.load("outer");
    bench.models["echo2"] = floats;
    await bench.load("echo2");
    await assert.rejects(bench.respond(requestTo("chain", [1])), /'chain' has no available versions/);
    await assert.rejects(bench.respond(requestTo("outer", [1])), /'outer' has no available versions/);
    await assert.rejects(bench.load("chain"), /^InferenceError: load failed for model 'chain': in ensemble chain, /);
    bench.models["echo2"] = echoConfig;
    await bench.load("echo2");
    assert.deepEqual((await bench.respond(requestTo("outer", [4]))).values, [4]);
  });

  it("needs the version that its step names", async () => {
    bench.versions["echo"] = [1, 2];
    bench.models["echo"] = `version_policy { all {} } ${echoConfig}`;
    bench.models["chain"] = chainOf(["echo"], 1);
    await bench.load("chain");
    bench.versions["echo"] = [2];
    await bench.load("echo");
    await assert.rejects(bench.load("chain"), {
      message:
        "load failed for model 'chain': ensemble 'chain' depends on 'echo' whose required version 1 is not loaded.\n",
    });
    bench.versions["echo"] = [1, 2];
    await bench.load("echo");
    assert.deepEqual((await bench.respond(requestTo("chain", [4]))).values, [4]);
  });

  it("keeps its graph when a reload names an unknown step", async () => {
    await bench.load("chain");
    bench.models["chain"] = chainOf(["echo", "nobody"]);
    await assert.rejects(bench.load("chain"), /not available or ambiguous: nobody/);
    await bench.load("echo");
    assert.deepEqual((await bench.respond(requestTo("chain", [4]))).values, [4]);
  });

  it("cannot form a circle with a graph that was loaded before or is loaded at the same time", async () => {
    bench.models["left"] = chainOf(["echo"]);
    bench.models["right"] = chainOf(["left"]);
    await bench.load("right");
    bench.models["left"] = chainOf(["right"]);
    await assert.rejects(bench.load("left"), /circular dependency between ensembles: left -> \.\.\. -> right -> left/);
    assert.deepEqual((await bench.respond(requestTo("right", [4]))).values, [4]);
    bench.models["one"] = chainOf(["two"]);
    bench.models["two"] = chainOf(["one"]);
    const both = await Promise.allSettled([bench.load("one"), bench.load("two")]);
    for (const each of both) assert.match(String(each.status === "rejected" && each.reason), /circular dependency/);
  });

  it("finishes its running requests when a step that they have not reached is reloaded or unloaded", async () => {
    const changes: Record<string, () => Promise<void>> = {
      reloaded: () => bench.load("echo2"),
      unloaded: () => bench.unload("echo2"),
      another: () => {
        bench.models["echo2"] = floats;
        return bench.load("echo2");
      },
      itself: () => bench.unload("chain"),
    };
    for (const [what, change] of Object.entries(changes)) {
      bench.models["echo2"] = echoConfig;
      await bench.load("echo2");
      await bench.load("outer");
      const open = hold("echo");
      const inFlight = bench.respond(requestTo("outer", [5]));
      await ticks();
      await change();
      await ticks();
      open();
      assert.deepEqual((await inFlight).values, [5], what);
    }
  });

  it("serves every request while its steps are reloaded", async () => {
    await bench.load("outer");
    const ended = new AbortController();
    let responseCount = 0;
    const client = async (model: string): Promise<void> => {
      for (; !ended.signal.aborted; responseCount++) {
        assert.deepEqual((await bench.respond(requestTo(model, [3]))).values, [3]);
        await ticks(1);
      }
    };
    const clients = ["echo", "chain", "outer", "outer"].map(client);
    for (let i = 0; i < 30; i++) {
      await bench.load(i % 2 === 0 ? "echo" : "echo2");
      await ticks(5);
    }
    ended.abort();
    await Promise.all(clients);
    assert.ok(responseCount > 100);
    await ticks();
    assert.equal(bench.backend.loadedCount, 2);
    assert.equal(bench.engine.memory().usedBytes, 2000);
    assert.equal(bench.backend.arena?.usedBytes, 0);
  });

  it("keeps its statistics over reloads of its steps, and starts from zero after an unload", async () => {
    const count = () => bench.engine.statistics("chain", "")[0]?.inferenceCount;
    await bench.load("chain");
    await bench.respond(requestTo("chain", [1]));
    await bench.load("echo");
    await bench.respond(requestTo("chain", [1]));
    assert.equal(count(), 2);
    await bench.unload("echo");
    await ticks();
    await bench.load("echo");
    assert.equal(count(), 0);
  });
});

describe("a namespace", () => {
  it("ends its requests before it closes, and is not reopened by models of other namespaces", async () => {
    const source = { repositoryDirectory: bench.directory, modelDirectoryName: "outer", servedName: "outer" };
    await bench.engine.openNamespace({ ...source, namespace: "a" }, bench.signal);
    await bench.engine.openNamespace({ ...source, namespace: "b" }, bench.signal);
    await bench.load("outer");
    const open = hold("echo");
    const inFlight = bench.respond(requestTo("outer", [5], { namespace: "a" }));
    await ticks();
    const closing = bench.engine.closeNamespace("a");
    await ticks();
    open();
    assert.deepEqual((await inFlight).values, [5]);
    await closing;
    assert.equal(bench.backend.loadedCount, 4);
    assert.equal(bench.engine.memory("a").usedBytes, 0);
    await bench.unload("echo");
    await bench.load("echo");
    await assert.rejects(bench.respond(requestTo("outer", [5], { namespace: "a" })), /'outer' is not found/);
    assert.deepEqual((await bench.respond(requestTo("outer", [6], { namespace: "b" }))).values, [6]);
  });
});
