import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { InferenceError } from "@galatea/base";
import { releaseResponse, DeferredResponses, type InferenceRequest, type Released } from "../../inference/index.ts";
import type { LoadedModel } from "../backend.ts";
import {
  executed as executedBySupervised,
  floats,
  floatsOf,
  header,
  inArena,
  only,
  openFixture,
  pidOf,
  request,
  until,
  type PythonFixture,
} from "./python-fixture.ts";

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture();
});

after(() => fixture[Symbol.asyncDispose]());

/**
 * A model whose `execute` runs `body` for each request. `out(request)` is the response. `later` keeps tasks from being garbage-collected.
 * `MAY_SEND` is a file that `maySend` writes.
 */
function plain(body: string, keyword = "async def"): string {
  const indented = body.replaceAll("\n", "\n            ");
  return `${header}import asyncio, os, threading, time
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
MAY_SEND = os.path.join(os.path.dirname(__file__), "may-send")
later = set()
def out(request):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy() * 2)])
def start(coroutine):
    task = asyncio.get_running_loop().create_task(coroutine)
    later.add(task)
    task.add_done_callback(later.discard)
async def send(request, sender=None):
    while not os.path.exists(MAY_SEND):
        await asyncio.sleep(0.002)
    (sender or request.get_response_sender()).send(out(request), FINAL)
class TritonPythonModel:
    ${keyword} execute(self, requests):
        for request in requests:
            ${indented}
`;
}

/** Lets the tasks and threads of a model send their responses. */
const maySend = (name: string) => writeFile(join(fixture.directory, name, "1", "may-send"), "");

const asked = (values: readonly number[], more: Partial<InferenceRequest> = {}): InferenceRequest => {
  const input = inArena(fixture.arena, floats("IN", values));
  return request([input], more);
};

async function executed(loaded: LoadedModel, batch: readonly InferenceRequest[]): Promise<readonly Released[]> {
  const { outcomes } = await executedBySupervised(only(loaded), batch);
  for (const { inputs } of batch) for (const { block } of inputs) block!.release();
  return outcomes;
}

/** Returns the outcome of a request: the numbers of its response, or its error. */
async function shown(outcome: Released | undefined): Promise<readonly number[] | string | null> {
  const last = outcome instanceof DeferredResponses ? await outcome.ended : outcome!;
  if (last === null) return null;
  if (last instanceof InferenceError) return last.message;
  const numbers = floatsOf(last.outputs[0]!);
  releaseResponse(last);
  return numbers;
}

const ofArena = () => until(() => fixture.arena.usedBytes === 0);

for (const [what, body] of [
  ["makes its sender", "start(send(request))"],
  ["is given its sender", "start(send(request, request.get_response_sender()))"],
] as const)
  test(`a task that ${what} responds after an asynchronous execute has returned`, async () => {
    const name = `task_${what.length}`;
    await using loaded = await fixture.load(name, plain(body));
    const [first, second] = await executed(loaded, [asked([1]), asked([2])]);
    assert.ok(first instanceof DeferredResponses);
    await maySend(name);
    assert.deepEqual([await shown(first), await shown(second)], [[2], [4]]);
    await ofArena();
  });

test("the instance is free while its tasks run: a hundred executions return before the first response", async () => {
  await using loaded = await fixture.load("free", plain("start(send(request))"));
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, (_, position) => executed(loaded, [asked([position])])),
  );
  await maySend("free");
  const responses = await Promise.all(outcomes.map(([outcome]) => shown(outcome)));
  assert.deepEqual(
    responses,
    responses.map((_, position) => [2 * position]),
  );
  await ofArena();
});

test("large tensors are also sent later, from threads, and retain no memory afterwards", async () => {
  const body = "threading.Timer(0.02, request.get_response_sender().send, (out(request), FINAL)).start()";
  await using loaded = await fixture.load("large", plain(body, "def"));
  const values = Array.from({ length: 100_000 }, (_, position) => position);
  const outcomes = await executed(loaded, [asked(values), asked([1]), asked(values)]);
  const responses = await Promise.all(outcomes.map(shown));
  assert.deepEqual(
    responses.map((numbers) => numbers!.length),
    [100_000, 1, 100_000],
  );
  assert.equal((responses[2] as number[])[99_999], 199_998);
  await ofArena();
});

test("execute may respond to some requests of a batch at once and to others later", async () => {
  const model = `${plain("pass", "def")}        first, second, third = requests
        sender = second.get_response_sender()
        def send_later():
            while not os.path.exists(MAY_SEND):
                time.sleep(0.002)
            sender.send(out(second), FINAL)
        threading.Thread(target=send_later).start()
        first.get_response_sender().send(out(first), FINAL)
        return [None, None, out(third)]
`;
  await using loaded = await fixture.load("mixed", model);
  const outcomes = await executed(loaded, [asked([1]), asked([2]), asked([3])]);
  assert.deepEqual(
    outcomes.map((outcome) => outcome instanceof DeferredResponses),
    [false, true, false],
  );
  await maySend("mixed");
  assert.deepEqual(await Promise.all(outcomes.map(shown)), [[2], [4], [6]]);
});

test("a task that fails before it has sent a response fails only its request", async () => {
  const body = `async def fail(request, sender):
    raise ValueError("in a task")
n = request.inputs()[0].as_numpy()[0]
start(fail(request, request.get_response_sender()) if n < 0 else send(request))`;
  await using loaded = await fixture.load("fails", plain(body));
  await maySend("fails");
  const outcomes = await executed(loaded, [asked([-1]), asked([2])]);
  assert.deepEqual(await Promise.all(outcomes.map(shown)), [
    "The response sender went away without having sent a response.",
    [4],
  ]);
});

test("a model that returns neither responses nor None gets an error that says so", async () => {
  await using loaded = await fixture.load("forgets", plain("out(request)", "def"));
  fixture.log.length = 0;
  const [outcome] = await executed(loaded, [asked([1])]);
  assert.equal(
    await shown(outcome),
    "Failed to process the request(s) for model 'forgets_0', message: Expected a list in the execute return, found type '<class 'NoneType'>'.",
  );
  await until(() =>
    fixture.log.some((line) => line.startsWith("error: Failed to process the request(s) for model 'forgets_0'")),
  );
});

test("SystemExit in a task ends only the task", async () => {
  const body = `async def leave():
    raise SystemExit(3)
start(leave())
start(send(request))`;
  await using loaded = await fixture.load("leaves", plain(body));
  await maySend("leaves");
  for (const n of [1, 2]) {
    const [outcome] = await executed(loaded, [asked([n])]);
    assert.deepEqual(await shown(outcome), [2 * n]);
  }
});

test("a task can see that its request was cancelled, and its later responses are dropped", async () => {
  const body = `async def watch(request, sender):
    while not sender.is_cancelled():
        await asyncio.sleep(0.01)
    print("saw it", flush=True)
    sender.send(out(request), FINAL)
start(watch(request, request.get_response_sender()))`;
  await using loaded = await fixture.load("watches", plain(body));
  const input = asked([1]);
  const [outcome] = await executed(loaded, [input]);
  only(loaded).abandonRequest(input);
  assert.deepEqual(await shown(outcome), [2]);
  await until(() => fixture.log.includes("printed: saw it"));
});

test("requests in flight when their worker dies fail with its exit status, and the next worker serves", async () => {
  await using loaded = await fixture.load("dies", plain("start(send(request))"));
  const [open] = await executed(loaded, [asked([9])]);
  process.kill(pidOf(loaded), "SIGKILL");
  assert.match(String(await shown(open)), /^Stub process 'dies_0' is not healthy/);
  const [next] = await executed(loaded, [asked([1])]);
  await maySend("dies");
  assert.deepEqual(await shown(next), [2]);
  await ofArena();
});

test("an execute that raises while a thread still has a sender fails its requests; the thread's response is rejected", async () => {
  const body = `def send_later(sender):
    while not os.path.exists(MAY_SEND):
        time.sleep(0.002)
    try:
        sender.send(out(request), FINAL)
    except Exception as error:
        print(error, flush=True)
threading.Thread(target=send_later, args=(request.get_response_sender(),)).start()
raise ValueError("before anything was sent")`;
  await using loaded = await fixture.load("raises", plain(body, "def"));
  const [outcome] = await executed(loaded, [asked([1])]);
  assert.match(String(await shown(outcome)), /ValueError: before anything was sent/);
  await maySend("raises");
  await until(() =>
    fixture.log.includes("printed: Unable to send response. Non-decoupled model cannot send more than one response."),
  );
});
