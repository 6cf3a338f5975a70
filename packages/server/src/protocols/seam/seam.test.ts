import assert from "node:assert/strict";
import { test } from "node:test";
import { openEngineSubject } from "../../engine/engine-subject.contract.ts";
import { engineContract } from "../../engine/engine.contract.ts";
import type { ServedModel } from "../../engine/index.ts";
import {
  noParameters,
  newInferenceRequest,
  type ResponseSink,
  type InferenceRequest,
  type InferenceResponse,
} from "../../inference/index.ts";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { connectOverMessages, subjectOverMessages } from "./across-seam.ts";

engineContract("the engine across the seam", () => openEngineSubject().then(subjectOverMessages));

const target = { namespace: "", modelName: "add_sub", modelVersion: "" };
const request = (signal: AbortSignal | null): InferenceRequest =>
  newInferenceRequest({
    id: "r",
    ...target,
    inputs: [],
    parameters: new Map([["a", 1n]]),
    signal,
  });
const answer: InferenceResponse = { modelName: "add_sub", modelVersion: "1", outputs: [], parameters: noParameters };

/** A model whose stream is in the test's hands. */
function open() {
  const asked: { request: InferenceRequest; sink: ResponseSink; end: () => void }[] = [];
  const fake = new FakeEngine();
  addUsualModels(fake);
  const opened = fake.open.bind(fake);
  fake.open = (wanted): ServedModel => ({
    ...opened(wanted),
    stream: (given, sink) => new Promise((resolve) => asked.push({ request: given, sink, end: () => resolve() })),
  });
  const seam = connectOverMessages(fake);
  return { seam, asked, model: seam.engine.open(target) };
}

test("what crosses is a copy: of a request all that is said, of a model a view that nobody can write to", () => {
  const { asked, model } = open();
  const sent = request(null);
  void model.stream(sent, { respond: () => {} });
  const { signal, ...arrived } = asked[0]!.request;
  assert.deepEqual({ ...arrived, signal: null }, sent);
  assert.notEqual(arrived.parameters, sent.parameters);
  assert.notEqual(signal, null);
  assert.throws(() => Object.assign(model.view.config, { name: "another" }), /read only property/);
});

test("answers come in order, and each is taken by a message of its own", async () => {
  const { seam, asked, model } = open();
  const given: (() => void)[] = [];
  const over = model.stream(request(null), { respond: (_outcome, _isFinal, taken) => void given.push(taken) });
  const takenOf: string[] = [];
  asked[0]!.sink.respond(answer, false, () => takenOf.push("first"));
  asked[0]!.sink.respond(answer, true, () => takenOf.push("second"));
  assert.deepEqual([given.length, takenOf], [2, []]);
  given[1]!();
  assert.deepEqual(takenOf, ["second"]);
  asked[0]!.end();
  await over;
  model[Symbol.dispose]();
  assert.equal(seam.openCount, 1, "an answer has not left yet");
  given[0]!();
  assert.deepEqual([takenOf, seam.openCount], [["second", "first"], 0]);
});

test("a request that is given up is given up on the other side, before it crosses too", () => {
  const { asked, model } = open();
  const controller = new AbortController();
  void model.stream(request(controller.signal), { respond: () => {} });
  assert.equal(asked[0]!.request.signal?.aborted, false);
  controller.abort();
  assert.equal(asked[0]!.request.signal?.aborted, true);
  void model.stream(request(AbortSignal.abort()), { respond: () => {} });
  assert.equal(asked[1]!.request.signal?.aborted, true);
});
