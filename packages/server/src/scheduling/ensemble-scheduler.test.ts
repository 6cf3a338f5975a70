import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import { newRecord, type InferenceResponse } from "../inference/index.ts";
import { releaseTensors } from "../tensor/index.ts";
import { input, options, output, scheduled, steps } from "./ensemble-fixtures.ts";
import { adaptShape } from "./ensemble-graph.ts";
import { createDynamicBatchScheduler } from "./dynamic-batch-scheduler.ts";
import { createEnsembleScheduler } from "./ensemble-scheduler.ts";
import {
  cancelledOutcome,
  ManualClock,
  StubInstance,
  dynamicModel,
  ensembleModel,
  inferOne,
  modelOf,
  noPolicy,
  requestOf,
  send,
  tensorOf,
  twoTicks,
} from "./scheduling-fixtures.ts";

const diamond = () => steps("a: I>X,Y", "b: X>P", "c: Y>Q", "d: P,Q>O");
const diamondConfig = { inputs: [input("I")], outputs: [output("O"), output("P")] };

test("a step starts as soon as its inputs exist, branches run in parallel, and tensors are passed on and released", async () => {
  const { hand, scheduler } = scheduled(diamond(), diamondConfig);
  const block = hand.memory.block();
  const record = newRecord(0, 1);
  let released = 0;
  const result = inferOne(scheduler, requestOf("r", { inputs: [tensorOf("I", [1, 2], block)] }), record, () => {
    released++;
    block.release();
  });
  await hand.step("a").end();
  assert.deepEqual([...hand.open.keys()], ["b#2", "c#3"]);
  await hand.step("c").end();
  await hand.step("b").end();
  const d = hand.step("d").request;
  assert.deepEqual(
    d.inputs.map(({ name }) => name),
    ["P_in", "Q_in"],
  );
  await hand.step("d").end();
  const response = await result;
  assert.deepEqual(
    response.outputs.map(({ name }) => name),
    ["O", "P"],
  );
  assert.equal(response.modelVersion, "3");
  assert.deepEqual(
    [...response.parameters],
    [
      ["sequence_id", 0n],
      ["sequence_start", false],
      ["sequence_end", false],
    ],
  );
  assert.deepEqual(
    [record.startedNs - record.queuedNs, record.computeInferNs, record.countsExecution, released],
    [40, 8, true, 1],
  );
  assert.equal(hand.memory.live, 2, "only the response's tensors are left");
  releaseTensors(response.outputs);
  assert.deepEqual([hand.memory.live, hand.memory.faults], [0, []]);
});

test("steps that produce only unrequested outputs do not run, and each step computes only the outputs that are used", async () => {
  const { hand, scheduler } = scheduled(diamond(), diamondConfig);
  const sent = send(scheduler, "r", { inputs: [tensorOf("I", [1])], requestedOutputs: ["P"] });
  assert.deepEqual(hand.step("a").request.requestedOutputs, ["X_out"]);
  await hand.step("a").end();
  await hand.step("b").end();
  assert.deepEqual([sent.outcome, hand.log], ["m", ["a", "b"]]);
});

test("id, sequence, priority, timeout, deadline, caller and parameters go to every step", async () => {
  const { hand, scheduler } = scheduled(steps("a: I>X", "b: X>O"), { inputs: [input("I")], outputs: [output("O")] });
  const sequence = { id: 42n, start: true, end: false };
  const forwarded = {
    parameters: new Map([["foo", "bar"]]),
    sequence,
    priority: 2,
    queueTimeoutUs: 7,
    deadlineNs: 1_000_007_000,
    executionMsMax: 59_000,
    caller: {
      execution: {
        owner: {},
        modelName: "c",
        depth: 1,
        deadlineNs: 1_000_007_000,
        executionMsMax: null,
        callers: new Set<never>(),
        holdsInstance: true,
      },
    },
    namespace: "n",
  };
  const response = inferOne(
    scheduler,
    requestOf("r", { ...forwarded, inputs: [tensorOf("I", [1])] }),
    newRecord(0, 1),
    () => {},
  );
  for (const name of ["a", "b"]) {
    const { id, parameters, sequence: seen, priority, namespace, ...step } = hand.step(name).request;
    const { queueTimeoutUs, deadlineNs, executionMsMax, caller } = step;
    assert.deepEqual(
      { id, parameters, sequence: seen, priority, queueTimeoutUs, deadlineNs, executionMsMax, caller, namespace },
      { id: "r", ...forwarded },
    );
    await hand.step(name).end();
  }
  assert.equal((await response).parameters.get("sequence_id"), 42n);
});

test("the deadline of a request applies across the queues of all steps", async () => {
  const clock = new ManualClock();
  const policy = { ...noPolicy, defaultTimeoutUs: 10_000, allowTimeoutOverride: true };
  const instances = [new StubInstance("a_0_0"), new StubInstance("b_0_0")];
  const model = dynamicModel(1, { defaultQueuePolicy: policy });
  const models = instances.map((instance) =>
    createDynamicBatchScheduler([instance], model, { clock, queueLengthMax: 9 }),
  );
  const graph = steps("a: I>X", "b: X>O");
  const scheduler = createEnsembleScheduler(
    ensembleModel(graph, { inputs: [input("I")], outputs: [output("O")] }),
    graph.map(({ modelName }) => modelOf(modelName)),
    {
      infer: (step, request, record) => inferOne(models[step]!, request, record, () => {}),
      stream: () => assert.fail("no step is decoupled"),
    },
    { ...options, clock },
  );
  const deadlineNs = clock.monotonicNs() + 5e6;
  const busy = send(models[1]!, "busy");
  const sent = send(scheduler, "r", { inputs: [tensorOf("I", [1])], deadlineNs });
  await clock.move(3);
  await instances[0]!.end();
  assert.deepEqual([instances[0]!.log, sent.outcome], [["r"], "waiting"]);
  await clock.move(2);
  assert.equal(sent.outcome, "UNAVAILABLE in ensemble 'e', Request timeout expired");
  await instances[1]!.end();
  assert.deepEqual([busy.outcome, instances[1]!.log], ["busy", ["busy"]]);
});

test("a failed step's message gets the ensemble's name, keeps its code, and ends the other branch", async () => {
  const { hand, scheduler } = scheduled(diamond(), diamondConfig);
  const sent = send(scheduler, "r", { inputs: [tensorOf("I", [1])] });
  await hand.step("a").end();
  await hand.step("b").fail(new InferenceError("NOT_FOUND", "boom"));
  assert.deepEqual([sent.outcome, sent.releaseCount, hand.open.size], ["NOT_FOUND in ensemble 'e', boom", 1, 0]);
  assert.deepEqual([hand.memory.live, hand.memory.faults], [0, []]);
});

test("an output that no step produced is missing in the response (tritonserver 2.51 returns the others)", async () => {
  const { hand, scheduler } = scheduled(steps("a: I>O,P"), diamondConfig);
  const result = inferOne(scheduler, requestOf("r", { inputs: [tensorOf("I", [1])] }), newRecord(0, 1), () => {});
  await hand.step("a").end(["P_out", "unknown"]);
  const { outputs, parameters } = await result;
  assert.deepEqual([outputs.map(({ name }) => name), [...parameters.keys()].length], [["P"], 3]);
  releaseTensors(outputs);
  assert.deepEqual([hand.memory.live, hand.memory.faults], [0, []]);
});

test("if the last step produces none of the outputs, the response has no outputs and no parameters, as in Triton", async () => {
  const { hand, scheduler } = scheduled(steps("a: I>O,P"), diamondConfig);
  const result = inferOne(scheduler, requestOf("r", { inputs: [tensorOf("I", [1])] }), newRecord(0, 1), () => {});
  await hand.step("a").end(["unknown"]);
  const { outputs, parameters } = await result;
  assert.deepEqual([outputs, parameters.size], [[], 0]);
  assert.deepEqual([hand.memory.live, hand.memory.faults], [0, []]);
});

test("a step whose input was not produced runs without it, because its own model checks its inputs", async () => {
  const { hand, scheduler } = scheduled(steps("a: I>X,Y", "b: X,Y>O"), {
    inputs: [input("I")],
    outputs: [output("O")],
  });
  send(scheduler, "r", { inputs: [tensorOf("I", [1])] });
  await hand.step("a").end(["Y_out"]);
  assert.deepEqual(
    hand.step("b").request.inputs.map(({ name }) => name),
    ["Y_in"],
  );
});

test("a cancelled request settles at once; its running steps are notified and their responses released", async () => {
  const { hand, scheduler } = scheduled(steps("a: I>X", "b: X>O"), { inputs: [input("I")], outputs: [output("O")] });
  const sent = send(scheduler, "r", { inputs: [tensorOf("I", [1])] });
  await hand.step("a").end();
  sent.controller.abort();
  await twoTicks();
  assert.deepEqual([sent.outcome, sent.releaseCount, hand.log], [cancelledOutcome("r"), 1, ["a", "b"]]);
  assert.deepEqual([hand.memory.live, hand.memory.faults], [0, []]);
  await scheduler.close();
});

test("max_inflight_requests limits the requests at each step, in order; a cancelled request leaves the queue", async () => {
  const { hand, scheduler } = scheduled(steps("a: I>O"), {
    inputs: [input("I")],
    outputs: [output("O")],
    inflightRequestsMax: 1,
  });
  const sent = ["r1", "r2", "r3"].map((id) => send(scheduler, id, { inputs: [tensorOf("I", [1])] }));
  assert.deepEqual([hand.log.length, scheduler.pendingCount], [1, 2]);
  sent[1]?.controller.abort();
  await twoTicks();
  assert.deepEqual([sent[1]?.outcome, sent[1]?.releaseCount, scheduler.pendingCount], [cancelledOutcome("r2"), 1, 1]);
  await hand.step("a").end();
  assert.equal(hand.step("a").request.id, "r3");
  await hand.step("a").end();
  assert.deepEqual(
    sent.map(({ outcome }) => outcome),
    ["m", cancelledOutcome("r2"), "m"],
  );
});

test("a request whose deadline passes while it waits for a slot of a step is rejected; one that runs is not", async () => {
  const { clock } = options;
  const { hand, scheduler } = scheduled(steps("a: I>X", "b: X>O"), {
    inputs: [input("I")],
    outputs: [output("O")],
    inflightRequestsMax: 1,
  });
  const deadlineNs = clock.monotonicNs() + 5e6;
  const sent = ["runs", "late", "patient"].map((id) =>
    send(scheduler, id, {
      inputs: [tensorOf("I", [1])],
      deadlineNs: id === "patient" ? Number.POSITIVE_INFINITY : deadlineNs,
    }),
  );
  await clock.move(4);
  assert.equal(sent[1]?.outcome, "waiting");
  await clock.move(2);
  assert.deepEqual(
    [sent[1]?.outcome, sent[1]?.releaseCount, scheduler.pendingCount],
    ["UNAVAILABLE in ensemble 'e', Request timeout expired", 1, 1],
  );
  for (const model of ["a", "b", "a", "b"]) await hand.step(model).end();
  assert.deepEqual([sent[0]?.outcome, sent[2]?.outcome, clock.timerCount], ["m", "m", 0]);
  // Only the outputs of the two responses are still allocated; the caller owns them.
  assert.deepEqual([hand.memory.live, hand.memory.faults], [2, []]);
  await scheduler.close();
});

test("a nested ensemble's error names both", async () => {
  const inner = scheduled(steps("a: I_in>O_out"), { inputs: [input("I_in")], outputs: [output("O_out")] });
  const outer = createEnsembleScheduler(
    { ...ensembleModel(steps("inner: I>O"), { inputs: [input("I")], outputs: [output("O")] }), name: "outer" },
    [modelOf("inner")],
    {
      infer: (_step, request, record) =>
        inferOne(inner.scheduler, request, record, () => releaseTensors(request.inputs)),
      stream: () => assert.fail("the step is not decoupled"),
    },
    options,
  );
  const sent = send(outer, "r", { inputs: [tensorOf("I", [1])] });
  await inner.hand.step("a").fail(new InferenceError("UNAVAILABLE", "Request timeout expired"));
  assert.equal(sent.outcome, "UNAVAILABLE in ensemble 'outer', in ensemble 'e', Request timeout expired");
});

test("the batch axis is added or taken away between models that batch and models that do not", () => {
  assert.deepEqual(adaptShape([2, 16], true, [16], true), [2, 16]);
  assert.deepEqual(adaptShape([16], false, [16], true), [1, 16]);
  assert.deepEqual(adaptShape([3, 16], false, [16], true), [3, 16]);
  assert.deepEqual(adaptShape([1, 16], true, [16], false), [16]);
  assert.deepEqual(adaptShape([1, 16], true, [-1, 16], false), [1, 16]);
  assert.deepEqual(adaptShape([2, 16], true, [-1, 16], false), [2, 16]);
});

/** Random acyclic graphs: each step reads tensors of the request or of earlier steps and writes one or two new tensors. */
const graphs = fc
  .array(
    fc.record({ reads: fc.array(fc.nat(30), { minLength: 1, maxLength: 3 }), writes: fc.integer({ min: 1, max: 2 }) }),
    {
      minLength: 1,
      maxLength: 7,
    },
  )
  .map((drawn) => {
    const known = ["I"];
    const texts = drawn.map(({ reads, writes }, index) => {
      const from = [...new Set(reads.map((read) => known[read % known.length] as string))];
      const to = Array.from({ length: writes }, (_, at) => `T${index}${"ab"[at]}`);
      known.push(...to);
      return `s${index}: ${from.join(",")}>${to.join(",")}`;
    });
    return { texts, made: known.slice(1) };
  });

test("property: over random graphs, failures and cancellations nothing is leaked and nothing is released twice", async () => {
  const action = fc.record({
    kind: fc.constantFrom("end", "end", "end", "twice", "partial", "fail", "abort"),
    at: fc.nat(10),
  });
  await fc.assert(
    fc.asyncProperty(
      graphs,
      fc.nat(30),
      fc.nat(2),
      fc.boolean(),
      fc.array(action, { maxLength: 30 }),
      async ({ texts, made }, expected, limit, ignoresSignal, actions) => {
        const outputs = [...new Set([made[expected % made.length] as string, made.at(-1) as string])];
        const { hand, scheduler } = scheduled(steps(...texts), {
          inputs: [input("I")],
          outputs: outputs.map((name) => output(name)),
          inflightRequestsMax: limit,
        });
        hand.ignoresSignal = ignoresSignal;
        const controllers = [new AbortController(), new AbortController()];
        let released = 0;
        const responses: InferenceResponse[] = [];
        let settledCount = 0;
        for (const [index, { signal }] of controllers.entries()) {
          const block = hand.memory.block();
          const request = requestOf(String(index), { inputs: [tensorOf("I", [1], block)], signal });
          inferOne(scheduler, request, newRecord(0, 1), () => {
            released++;
            block.release();
          })
            .then(
              (response) => responses.push(response),
              () => {},
            )
            .finally(() => settledCount++);
        }
        for (const { kind, at } of actions) {
          const running = [...hand.open.values()];
          const step = running[at % Math.max(1, running.length)];
          if (kind === "abort") controllers[at % 2]?.abort();
          else if (kind === "fail") await step?.fail(new InferenceError("INTERNAL", "no"));
          else if (kind === "partial") await step?.end([]);
          else if (kind === "twice")
            await step?.end([...(step.request.requestedOutputs ?? []), ...(step.request.requestedOutputs ?? [])]);
          else await step?.end();
        }
        const closed = scheduler.close();
        await twoTicks();
        while (hand.open.size > 0) await [...hand.open.values()][0]?.end();
        await closed;
        await twoTicks();
        for (const response of responses) releaseTensors(response.outputs);
        assert.deepEqual([settledCount, released, hand.memory.live, hand.memory.faults], [2, 2, 0, []]);
        assert.equal(scheduler.pendingCount, 0);
      },
    ),
    { numRuns: 300 },
  );
});

test("an unload that has abandoned its requests does not wait for a step that hangs", async () => {
  const { hand, scheduler } = scheduled(steps("a: I>O"), { inputs: [input("I")], outputs: [output("O")] });
  const request = requestOf("r", { inputs: [tensorOf("I", [1, 2], hand.memory.block())] });
  const response = inferOne(scheduler, request, newRecord(0, 1), () => releaseTensors(request.inputs));
  scheduler.abandon(new InferenceError("UNAVAILABLE", "over"));
  await assert.rejects(response, { message: "over" });
  await scheduler.close();
  await hand.step("a").end();
  assert.equal(hand.memory.live, 0);
});
