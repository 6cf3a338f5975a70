/** Tests of ensembles with decoupled steps. The names of decoupled models are in capitals. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import { newRecord, releaseResponse, type InferenceRequest, type Outcome } from "../inference/index.ts";
import { input, output, scheduled, steps, type StubSteps } from "./ensemble-fixtures.ts";
import type { Scheduler } from "./scheduler.ts";
import { cancelledOutcome, requestOf, tensorOf, twoTicks } from "./scheduling-fixtures.ts";

/** Responses that a client received, in order, and their acknowledgements. */
class Reader {
  readonly seen: string[] = [];
  readonly untaken: (() => void)[] = [];
  takesAtOnce = true;
  outcome = "waiting";
  releaseCount = 0;
  readonly controller = new AbortController();
  readonly record = newRecord(0, 1);
  readonly #names: (outcome: Outcome) => string;

  constructor(scheduler: Scheduler, hand: StubSteps, more: Partial<InferenceRequest> = {}) {
    this.#names = (outcome) =>
      outcome instanceof InferenceError ? outcome.message : outcome.outputs.map(({ name }) => name).join() || "empty";
    const block = hand.memory.block();
    const responseSink = {
      respond: (outcome: Outcome | null, isFinal: boolean, consumed: () => void) => {
        this.seen.push(`${outcome === null ? "nothing" : this.#names(outcome)}${isFinal ? ", final" : ""}`);
        if (outcome !== null && !(outcome instanceof InferenceError)) releaseResponse(outcome);
        if (this.takesAtOnce) consumed();
        else this.untaken.push(consumed);
      },
    };
    const request = { inputs: [tensorOf("I", [1], block)], signal: this.controller.signal, responseSink, ...more };
    scheduler
      .infer(requestOf("r", request), this.record, () => {
        this.releaseCount++;
        block.release();
      })
      .then(
        () => (this.outcome = "over"),
        (error: InferenceError) => (this.outcome = `${error.code} ${error.message}`),
      );
  }

  async takeAll(): Promise<void> {
    for (const consumed of this.untaken.splice(0)) consumed();
    await twoTicks();
  }
}

const one = { inputs: [input("I")], outputs: [output("O")] };

test("later steps run once for each response, and the final response is sent when no step is left", async () => {
  const { hand, scheduler } = scheduled(steps("M: I>X", "b: X>O"), one);
  const reader = new Reader(scheduler, hand);
  const many = hand.streamOf("M");
  await many.respond();
  await many.respond();
  assert.deepEqual(hand.log, ["M", "b", "b"]);
  await hand.step("b").end();
  await many.final();
  await many.release();
  assert.deepEqual([reader.seen, reader.outcome], [["O"], "waiting"]);
  await hand.step("b").end();
  assert.deepEqual([reader.seen, reader.outcome, reader.releaseCount], [["O", "O", "nothing, final"], "over", 1]);
  assert.deepEqual([hand.memory.live, hand.memory.faults], [0, []]);
});

test("a final flag without a response ends the ensemble's stream, before or after the later step has ended", async () => {
  const seen: (readonly string[])[] = [];
  for (const isBefore of [true, false]) {
    const { hand, scheduler } = scheduled(steps("M: I>X", "b: X>O"), one);
    const reader = new Reader(scheduler, hand);
    const many = hand.streamOf("M");
    await many.respond();
    if (isBefore) await many.final();
    await hand.step("b").end();
    if (!isBefore) await many.final();
    await many.release();
    seen.push(reader.seen);
  }
  assert.deepEqual(seen, [
    ["O", "nothing, final"],
    ["O", "nothing, final"],
  ]);
});

test("a step may send no response, or set the final flag on its last response", async () => {
  const { hand, scheduler } = scheduled(steps("M: I>X", "b: X>O"), one);
  const [none, last] = [new Reader(scheduler, hand), new Reader(scheduler, hand)];
  const [first, second] = [...hand.streams.values()];
  await first?.final();
  await second?.respond(true);
  await hand.step("b").end();
  assert.deepEqual([none.seen, last.seen], [["nothing, final"], ["O, final"]]);
  assert.deepEqual([none.outcome, last.outcome], ["waiting", "waiting"], "before the step's execution has returned");
  await first?.release();
  await second?.release();
  assert.deepEqual([none.outcome, last.outcome], ["over", "over"]);
});

test("the ensemble's times include all steps, also executions that return after the last response", async () => {
  const { hand, scheduler } = scheduled(steps("M: I>X", "b: X>O"), one);
  const reader = new Reader(scheduler, hand);
  const many = hand.streamOf("M");
  await many.respond(true);
  await hand.step("b").end();
  await many.release();
  assert.equal(reader.outcome, "over");
  assert.equal(reader.record.computeInferNs, 4);
});

test("responses that derive from the same response are joined, in whatever order they arrive", async () => {
  const graph = steps("M: I>X", "b: X>P", "c: X>Q", "d: P,Q>O");
  const { hand, scheduler } = scheduled(graph, one);
  const reader = new Reader(scheduler, hand);
  await hand.streamOf("M").respond();
  await hand.streamOf("M").respond();
  const running = (name: string) =>
    [...hand.open].filter(([key]) => key.startsWith(`${name}#`)).map(([, step]) => step);
  const [, lateB] = running("b");
  const [earlyC, lateC] = running("c");
  await lateB?.end();
  await earlyC?.end();
  assert.deepEqual(running("d"), [], "halves of two responses were joined");
  await lateC?.end();
  assert.equal(running("d").length, 1);
  await running("d")[0]?.end();
  assert.deepEqual(reader.seen, ["O"]);
});

test("a step's credit is returned when all responses that derive from its response are acknowledged", async () => {
  const { hand, scheduler } = scheduled(steps("M: I>X", "N: X>Y", "c: Y>O"), one);
  const reader = new Reader(scheduler, hand);
  reader.takesAtOnce = false;
  const first = hand.streamOf("M");
  await first.respond();
  const second = hand.streamOf("N");
  await second.respond();
  await second.respond(true);
  await second.release();
  await hand.step("c").end();
  await hand.step("c").end();
  assert.deepEqual([reader.seen, first.acknowledgedCount, second.acknowledgedCount], [["O", "O"], 0, 0]);
  reader.untaken.shift()?.();
  await twoTicks();
  assert.deepEqual([first.acknowledgedCount, second.acknowledgedCount], [0, 1]);
  await reader.takeAll();
  assert.deepEqual([first.acknowledgedCount, second.acknowledgedCount], [1, 2]);
});

test("a client that reads nothing is sent 16 responses, and each decoupled step produces at most 16 for each earlier response", async () => {
  const { hand, scheduler } = scheduled(steps("M: I>X", "N: X>Y", "c: Y>O"), one);
  const reader = new Reader(scheduler, hand);
  reader.takesAtOnce = false;
  const first = hand.streamOf("M");
  for (let count = 0; count < 40; count++) await first.respond();
  assert.equal([...hand.streams.keys()].filter((key) => key.startsWith("N#")).length, 16);
  for (let count = 0; count < 20; count++) {
    await hand.streamOf("N").respond();
    await hand.step("c").end();
  }
  assert.equal(reader.seen.length, 16);
  await reader.takeAll();
  assert.equal(reader.seen.length, 20);
  reader.controller.abort();
  await twoTicks();
  await reader.takeAll();
  assert.deepEqual([reader.outcome, hand.streams.size, hand.open.size], [cancelledOutcome("r"), 0, 0]);
  assert.deepEqual([hand.memory.live, hand.memory.faults], [0, []]);
});

test("a failure ends the stream; running steps are notified, and their responses are released", async () => {
  for (const fail of [
    (hand: StubSteps) => hand.step("b").fail(new InferenceError("INTERNAL", "no")),
    (hand: StubSteps) => hand.streamOf("M").error(new InferenceError("INTERNAL", "no")),
  ]) {
    const { hand, scheduler } = scheduled(steps("M: I>X", "b: X>O"), one);
    hand.ignoresSignal = true;
    const reader = new Reader(scheduler, hand);
    const many = hand.streamOf("M");
    await many.respond();
    await many.respond();
    await hand.step("b").end();
    await fail(hand);
    assert.deepEqual([reader.seen, reader.outcome], [["O"], "INTERNAL in ensemble 'e', no"]);
    assert.equal(many.request.signal?.aborted, true);
    let isClosed = false;
    void scheduler.close().then(() => (isClosed = true));
    await many.respond();
    for (const step of hand.open.values()) await step.end();
    assert.deepEqual([isClosed, reader.seen], [false, ["O"]], "an unload does not wait for a step that runs");
    await many.release();
    assert.deepEqual([isClosed, hand.memory.live, hand.memory.faults], [true, 0, []]);
  }
});

test("an unload waits for the last response; when its timeout passes, the remaining requests fail", async () => {
  const { hand, scheduler } = scheduled(steps("M: I>X", "b: X>O"), one);
  const reader = new Reader(scheduler, hand);
  const many = hand.streamOf("M");
  await many.respond();
  let isClosed = false;
  void scheduler.close().then(() => (isClosed = true));
  await hand.step("b").end();
  await many.final();
  assert.deepEqual([reader.seen, isClosed], [["O", "nothing, final"], false], "its step's execution has not returned");
  await many.release();
  assert.equal(isClosed, true);
  const late = scheduled(steps("M: I>X", "b: X>O"), one);
  const waiting = new Reader(late.scheduler, late.hand);
  await late.hand.streamOf("M").respond();
  late.scheduler.abandon(new InferenceError("UNAVAILABLE", "over"));
  await twoTicks();
  assert.deepEqual([waiting.outcome, late.hand.memory.live], ["UNAVAILABLE over", 0]);
});

test("property: over failures, cancellations and clients of any speed nothing is leaked and nothing is released twice", async () => {
  const action = fc.record({
    kind: fc.constantFrom(
      "answer",
      "answer",
      "answer",
      "last",
      "final",
      "release",
      "end",
      "end",
      "partial",
      "fail",
      "error",
      "take",
      "abort",
    ),
    at: fc.nat(40),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(
        ["M: I>X", "b: X>O"],
        ["a: I>X", "M: X>O"],
        ["M: I>X", "N: X>Y", "c: Y>O"],
        ["M: I>X,Y", "b: X>P", "c: Y>Q", "N: P,Q>O"],
        ["M: I>X", "b: X>P", "c: X>Q", "d: P,Q>O"],
      ),
      fc.nat(3),
      fc.boolean(),
      fc.boolean(),
      fc.array(action, { maxLength: 60 }),
      async (graph, inflightRequestsMax, ignoresSignal, takesAtOnce, actions) => {
        const { hand, scheduler } = scheduled(steps(...graph), { ...one, inflightRequestsMax });
        hand.ignoresSignal = ignoresSignal;
        const readers = [new Reader(scheduler, hand), new Reader(scheduler, hand)];
        for (const reader of readers) reader.takesAtOnce = takesAtOnce;
        for (const { kind, at } of actions) {
          const reader = readers[at % 2];
          const step = [...hand.open.values()][at % Math.max(1, hand.open.size)];
          const stream = [...hand.streams.values()][at % Math.max(1, hand.streams.size)];
          if (kind === "abort") reader?.controller.abort();
          else if (kind === "take") await reader?.takeAll();
          else if (kind === "fail") await step?.fail(new InferenceError("INTERNAL", "no"));
          else if (kind === "partial") await step?.end([]);
          else if (kind === "end") await step?.end();
          else if (kind === "error") await stream?.error(new InferenceError("INTERNAL", "no"));
          else if (kind === "final") await stream?.final();
          else if (kind === "release") await stream?.final().then(() => stream.release());
          else await stream?.respond(kind === "last");
        }
        const closed = scheduler.close();
        for (;;) {
          for (const reader of readers) await reader.takeAll();
          const step = [...hand.open.values()][0];
          const stream = [...hand.streams.values()][0];
          if (step !== undefined) await step.end();
          else if (stream !== undefined) await stream.final().then(() => stream.release());
          else break;
        }
        await closed;
        await twoTicks();
        for (const reader of readers) {
          await reader.takeAll();
          assert.deepEqual([reader.outcome === "waiting", reader.releaseCount], [false, 1]);
          const finals = reader.seen.filter((text) => text.endsWith(", final")).length;
          assert.equal(finals, reader.outcome === "over" ? 1 : 0, reader.seen.join());
        }
        assert.deepEqual([hand.memory.live, hand.memory.faults, scheduler.pendingCount], [0, [], 0]);
      },
    ),
    { numRuns: 400 },
  );
});
