import assert from "node:assert/strict";
import { releaseResponse } from "../inference/index.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { hold, index, load, request, signal, failsWith, type Check } from "./contract-fixtures.ts";

/** Contract tests of loading and unloading by name, and of shutdown. */
export function repositoryControl(check: Check): void {
  check("the index lists what lies on disk with what became of it", async (engine) => {
    await load(engine, "echo");
    await load(engine, "words");
    await engine.unloadModel("words", false);
    await eventually(async () => (await index(engine)).every((row) => row.at(2) !== "UNLOADING"));
    const rows = await index(engine);
    assert.deepEqual(
      rows.find(([model]) => model === "echo"),
      ["echo", "1", "READY", ""],
    );
    assert.deepEqual(
      rows.find(([model]) => model === "words"),
      ["words", "1", "UNAVAILABLE", "unloaded"],
    );
    assert.deepEqual(
      rows.find(([model]) => model === "failing"),
      ["failing", "", "", ""],
    );
    assert.deepEqual(
      (await engine.repositoryIndex(true)).map((row) => [row.name, row.state]),
      [["echo", "READY"]],
    );
  });

  check("a model that was unloaded has no versions until it is loaded again", async (engine) => {
    await load(engine, "echo");
    await engine.unloadModel("echo", false);
    const target = { namespace: "", modelName: "echo", modelVersion: "" };
    const none = failsWith("NOT_FOUND", "Request for unknown model: 'echo' has no available versions");
    assert.throws(() => engine.open(target), none);
    await eventually(async () => (await index(engine)).every((row) => row.at(2) !== "UNLOADING"));
    const notReady = failsWith("UNAVAILABLE", "Request for unknown model: 'echo' version 1 is not at ready state");
    assert.throws(() => engine.open({ ...target, modelVersion: "1" }), notReady);
    assert.throws(() => engine.statistics("echo", ""), { code: "INVALID_ARG" });
    await load(engine, "echo");
    hold(engine, "echo")[Symbol.dispose]();
  });

  check("a call on an open model completes although the model was unloaded", async (engine) => {
    await load(engine, "echo");
    using model = hold(engine, "echo");
    await engine.unloadModel("echo", false);
    releaseResponse(await model.infer(request(model, "echo", [7])));
    assert.equal(model.view.config.name, "echo");
  });

  check("a name in no repository cannot be loaded, and may be unloaded", async (engine) => {
    const pollError = failsWith("INTERNAL", /^failed to load 'ghost', failed to poll from model repository/);
    await assert.rejects(load(engine, "ghost"), pollError);
    await engine.unloadModel("ghost", false);
    const unknown = failsWith("NOT_FOUND", "Request for unknown model: 'ghost' is not found");
    assert.throws(() => hold(engine, "ghost"), unknown);
  });

  check("an engine that exits is neither live nor ready and opens no model", async (engine, subject) => {
    await load(engine, "echo");
    assert.deepEqual([engine.live, engine.ready], [true, true]);
    subject.exit();
    assert.deepEqual([engine.live, engine.ready], [false, false]);
    assert.throws(() => hold(engine, "echo"), failsWith("UNAVAILABLE", "Server not ready"));
  });
}

/** Contract tests of namespaces: model archives that are registered through the container API. */
export function namespaces(check: Check): void {
  const source = (namespace: string, servedName = "echo") => ({
    namespace,
    repositoryDirectory: `/archives/${namespace}`,
    modelDirectoryName: servedName,
    servedName,
  });

  check("a namespace's models are its own, and go with their memory when it is closed", async (engine) => {
    await engine.openNamespace(source("a"), signal);
    assert.throws(() => hold(engine, "echo"), { code: "NOT_FOUND" });
    assert.throws(() => hold(engine, "echo", "", "b"), { code: "NOT_FOUND" });
    const usedBytes = engine.memory("a").usedBytes;
    assert.ok(usedBytes > 0);
    await engine.openNamespace(source("b"), signal);
    assert.deepEqual([engine.memory("a").usedBytes, engine.memory().usedBytes], [usedBytes, 2 * usedBytes]);
    {
      using model = hold(engine, "echo", "", "a");
      releaseResponse(await model.infer({ ...request(model, "echo", [1]), namespace: "a" }));
    }
    await engine.closeNamespace("a");
    assert.throws(
      () => hold(engine, "echo", "", "a"),
      failsWith("NOT_FOUND", "Request for unknown model: 'echo' is not found"),
    );
    assert.deepEqual([engine.memory("a").usedBytes, engine.memory().usedBytes], [0, usedBytes]);
    hold(engine, "echo", "", "b")[Symbol.dispose]();
  });

  check("a namespace is registered once, and closed once", async (engine) => {
    await engine.openNamespace(source("a"), signal);
    await assert.rejects(
      engine.openNamespace(source("a"), signal),
      failsWith("ALREADY_EXISTS", "model repository '/archives/a' has already been registered"),
    );
    await engine.closeNamespace("a");
    const unknown = failsWith("NOT_FOUND", "model repository 'a' is not registered");
    await assert.rejects(engine.closeNamespace("a"), unknown);
  });

  check("nothing is registered by a load that fails", async (engine) => {
    await assert.rejects(
      engine.openNamespace(source("a", "ghost"), signal),
      failsWith("INTERNAL", /^failed to load 'ghost'/),
    );
    await assert.rejects(engine.closeNamespace("a"), { code: "NOT_FOUND" });
    await engine.openNamespace(source("a"), signal);
  });

  check("the index and the statistics are of the server's own models", async (engine) => {
    await engine.openNamespace(source("a"), signal);
    assert.deepEqual(await engine.repositoryIndex(true), []);
    assert.deepEqual(engine.statistics("", ""), []);
  });
}
