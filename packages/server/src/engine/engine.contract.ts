import assert from "node:assert/strict";
import { test } from "node:test";
import { hold, load, metadataOf, failsWith, type Check, type EngineSubject } from "./contract-fixtures.ts";
import { decoupledModels, inference } from "./inference.contract.ts";
import { outputLabels } from "./model-view.ts";
import { namespaces, repositoryControl } from "./repository-control.contract.ts";

export { contractModels, type ContractModel, type ContractTensor, type EngineSubject } from "./contract-fixtures.ts";

/** The contract tests that every implementation of `Engine` must pass. `open` creates an engine without loaded models. */
export function engineContract(name: string, open: () => Promise<EngineSubject>): void {
  const check: Check = (title, work) => {
    test(`${name}: ${title}`, async () => {
      await using subject = await open();
      await work(subject.engine, subject);
    });
  };
  lookups(check);
  inference(check);
  decoupledModels(check);
  repositoryControl(check);
  namespaces(check);
}

function lookups(check: Check): void {
  check("every method reports an unknown name or version in Triton's words", async (engine) => {
    await load(engine, "echo");
    for (const [modelName, modelVersion, code, message] of [
      ["nobody", "", "NOT_FOUND", "Request for unknown model: 'nobody' is not found"],
      ["words", "", "NOT_FOUND", "Request for unknown model: 'words' is not found"],
      ["echo", "3", "NOT_FOUND", "Request for unknown model: 'echo' version 3 is not found"],
    ] as const) {
      const target = { namespace: "", modelName, modelVersion };
      assert.throws(() => engine.open(target), failsWith(code, message));
      assert.throws(() => engine.modelMetadata(target), failsWith(code, message));
    }
  });

  check("a model is found without a version, by its number and by -1", async (engine) => {
    await load(engine, "echo");
    for (const version of ["", "1", "-1"]) {
      using model = hold(engine, "echo", version);
      assert.equal(model.view.version, "1");
    }
  });

  check("an open model has its completed configuration, and may be closed twice", async (engine) => {
    await load(engine, "echo");
    const model = hold(engine, "echo");
    const { config } = model.view;
    assert.deepEqual([config.name, config.maxBatchSize, config.decoupled, model.isHealthy], ["echo", 4, false, true]);
    assert.deepEqual(
      config.outputs.map((output) => [output.name, output.datatype, output.dims]),
      [
        ["Y", "INT32", [-1]],
        ["Z", "INT32", [-1]],
      ],
    );
    assert.deepEqual(outputLabels(model.view, "Y"), []);
    assert.deepEqual(outputLabels(model.view, "no such output"), []);
    model[Symbol.dispose]();
    model[Symbol.dispose]();
  });

  check("metadata has shapes as clients send them", async (engine) => {
    await load(engine, "echo");
    await load(engine, "words");
    const tensor = (of: string, datatype: string, shape: number[]) => ({ name: of, datatype, shape });
    assert.deepEqual(metadataOf(engine, "echo"), {
      name: "echo",
      versions: ["1"],
      inputs: [tensor("X", "INT32", [-1, -1])],
      outputs: [tensor("Y", "INT32", [-1, -1]), tensor("Z", "INT32", [-1, -1])],
    });
    assert.deepEqual(metadataOf(engine, "words").inputs, [tensor("X", "BYTES", [2])]);
  });
}
