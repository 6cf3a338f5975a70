import { contractModels, engineContract, type EngineSubject } from "../engine/engine.contract.ts";
import { InferenceError } from "@galatea/base";
import { arenaTensor } from "./fake-arena.ts";
import { FakeEngine, type FakeModel, type FakeModelOptions } from "./fake-engine.ts";
import { subjectOverMessages } from "./engine-messages/connect-over-messages.ts";

function openFakeSubject(): Promise<EngineSubject> {
  const engine = new FakeEngine();
  let failingWaitsFor: Promise<void> = Promise.resolve();
  const runs: Record<keyof typeof contractModels, FakeModel> = {
    echo: (request, arena) => ["Y", "Z"].map((name) => arenaTensor(arena, { ...request.inputs[0]!, name })),
    words: (request, arena) => [arenaTensor(arena, { ...request.inputs[0]!, name: "Y" })],
    failing: async () => {
      await failingWaitsFor;
      throw new InferenceError("INTERNAL", "boom");
    },
    counting: (request, arena) =>
      [...new Int32Array(request.inputs[0]!.data.slice().buffer)].map((value) => {
        const data = new Uint8Array(Int32Array.of(value).buffer);
        return arenaTensor(arena, { name: "Y", datatype: "INT32", shape: [1], data });
      }),
  };
  const models = new Map<string, FakeModelOptions>();
  for (const [name, model] of Object.entries(contractModels))
    models.set(name, { ...model, run: runs[name as keyof typeof contractModels] });
  for (const [name, model] of models) engine.add(name, { ...model, loaded: false });
  engine.openNamespaceWith = ({ servedName, namespace }) => {
    const model = models.get(servedName);
    if (model === undefined) return Promise.reject(new InferenceError("INTERNAL", `failed to load '${servedName}'`));
    engine.add(servedName, model, namespace);
    return Promise.resolve();
  };
  return Promise.resolve({
    engine,
    holdFailing: (until) => void (failingWaitsFor = until),
    exit: () => {
      engine.live = false;
      engine.ready = false;
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

engineContract("the fake engine", openFakeSubject);
engineContract("the fake engine called through messages", () => openFakeSubject().then(subjectOverMessages));
