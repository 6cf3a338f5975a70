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
import { connectOverMessages, subjectOverMessages } from "./connect-over-messages.ts";

engineContract("an engine called through messages", () => openEngineSubject().then(subjectOverMessages));

const target = { namespace: "", modelName: "add_sub", modelVersion: "" };
const request = (signal: AbortSignal | null): InferenceRequest =>
  newInferenceRequest({
    id: "r",
    ...target,
    inputs: [],
    parameters: new Map([["a", 1n]]),
    signal,
  });
const result: InferenceResponse = { modelName: "add_sub", modelVersion: "1", outputs: [], parameters: noParameters };

/** Opens a model whose stream the test controls. */
function open() {
  const calls: { request: InferenceRequest; sink: ResponseSink; end: () => void }[] = [];
  const fake = new FakeEngine();
  addUsualModels(fake);
  const opened = fake.open.bind(fake);
  fake.open = (target): ServedModel => ({
    ...opened(target),
    stream: (request, sink) => new Promise((resolve) => calls.push({ request, sink, end: () => resolve() })),
  });
  const remote = connectOverMessages(fake);
  return { remote, calls, model: remote.engine.open(target) };
}

test("requests cross as complete copies, and the view of a model is read-only", () => {
  const { calls, model } = open();
  const sent = request(null);
  void model.stream(sent, { respond: () => {} });
  const { signal, ...arrived } = calls[0]!.request;
  assert.deepEqual({ ...arrived, signal: null }, sent);
  assert.notEqual(arrived.parameters, sent.parameters);
  assert.notEqual(signal, null);
  assert.throws(() => Object.assign(model.view.config, { name: "another" }), /read only property/);
});

test("responses arrive in order, and each is acknowledged by a separate message", async () => {
  const { remote, calls, model } = open();
  const given: (() => void)[] = [];
  const over = model.stream(request(null), { respond: (_outcome, _isFinal, consumed) => void given.push(consumed) });
  const takenOf: string[] = [];
  calls[0]!.sink.respond(result, false, () => takenOf.push("first"));
  calls[0]!.sink.respond(result, true, () => takenOf.push("second"));
  assert.deepEqual([given.length, takenOf], [2, []]);
  given[1]!();
  assert.deepEqual(takenOf, ["second"]);
  calls[0]!.end();
  await over;
  model[Symbol.dispose]();
  assert.equal(remote.openCount, 1, "one response is not acknowledged yet");
  given[0]!();
  assert.deepEqual([takenOf, remote.openCount], [["second", "first"], 0]);
});

test("a cancelled request is cancelled on the engine's side, even if it was cancelled before it was sent", () => {
  const { calls, model } = open();
  const controller = new AbortController();
  void model.stream(request(controller.signal), { respond: () => {} });
  assert.equal(calls[0]!.request.signal?.aborted, false);
  controller.abort();
  assert.equal(calls[0]!.request.signal?.aborted, true);
  void model.stream(request(AbortSignal.abort()), { respond: () => {} });
  assert.equal(calls[1]!.request.signal?.aborted, true);
});
