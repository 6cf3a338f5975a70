/** Models that call each other: effects of failures of one model on the other. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { errorOf, load, unload } from "./http-client.ts";
import { runCode, outputOfCode, writeCallingModel } from "./calling-model.ts";
import { processesMarked } from "./processes.ts";
import { openServing, type Serving } from "./serving.ts";
import { leftBy, writeStreamingModel } from "./streaming-model.ts";
import { pidIn, until } from "./until.ts";

let serving: Serving;
let port: number;

const models = ["a", "b", "c", "pair"];

before(async () => {
  serving = await openServing({
    flags: [
      "--model-control-mode=explicit",
      ...[...models, "streams"].map((name) => `--load-model=${name}`),
      "--unload-timeout-secs=5",
    ],
    write: async ({ repository }) => {
      for (const name of models) await writeCallingModel(repository, name, { count: name === "pair" ? 2 : 1 });
      await writeStreamingModel(repository, "streams");
    },
  });
  port = serving.server.httpPort;
});
after(() => serving[Symbol.asyncDispose]());

const left = (model: string, name: string) => leftBy(serving.repository, model, name);
const allow = (model: string, name: string) => writeFile(join(serving.repository, model, name), "");
const waitFor = (name: string) => `\nwhile not has(${JSON.stringify(name)}): time.sleep(0.01)`;
const quoted = JSON.stringify;
const inCircle = /error: model '[abc]' waits for '[abc]', whose instances all wait/;

test("a model with one instance that calls itself gets an error soon, and continues", async () => {
  assert.match(await outputOfCode(port, "a", 'out = call("a", "out = 1")'), inCircle);
  assert.equal(await outputOfCode(port, "a", "out = 5"), "5");
});

test("with two instances one such request succeeds; two concurrent ones deadlock, and one of them fails", async () => {
  assert.equal(await outputOfCode(port, "pair", 'out = call("pair", "out = 1")'), "[[b'1']]");
  const both = await Promise.all(
    [1, 2].map(() => outputOfCode(port, "pair", 'time.sleep(0.3); out = call("pair", "out = 1")')),
  );
  assert.ok(
    both.some((text) => text === "[[b'1']]"),
    both.join(),
  );
});

test("if a calls b and b calls a, the call that closes the circle fails, and its callers continue", async () => {
  const inner = 'out = call("a", "out = 1")';
  assert.match(await outputOfCode(port, "a", `out = call("b", ${quoted(inner)})`), inCircle);
});

test("two requests that each occupy the instance that the other needs do not hang", async () => {
  const crossed = (other: string) => `leave("holds", "")${waitFor("cross")}\nout = call(${quoted(other)}, "out = 1")`;
  const pending = Promise.all([outputOfCode(port, "a", crossed("b")), outputOfCode(port, "b", crossed("a"))]);
  await Promise.all(["a", "b"].map((model) => left(model, "holds")));
  await Promise.all(["a", "b"].map((model) => allow(model, "cross")));
  const texts = await pending;
  assert.ok(texts.some((text) => inCircle.test(text)) && texts.includes("[[b'1']]"), texts.join());
});

test("calls nest", async () => {
  const innermost = 'out = call("c", "out = 7")';
  assert.equal(await outputOfCode(port, "a", `out = call("b", ${quoted(innermost)})`), `[[b"[[b'7']]"]]`);
});

test("if a called model is killed, the call fails with the reason, and the caller continues", async () => {
  const text = await outputOfCode(port, "a", 'out = call("b", "import os; os.kill(os.getpid(), 9)")');
  assert.match(text, /^error: Stub process 'b_0_0' is not healthy/);
  await until("the instance runs again", async () => (await runCode(port, "b", "out = 1")).status === 200);
});

test("if a calling model is killed, the called model is notified and nothing is left behind", async () => {
  const called = `leave("began", "")\nwhile not request.is_cancelled(): time.sleep(0.01)\nleave("told", "so")`;
  const pending = runCode(port, "a", `import os; leave("pid", os.getpid()); out = call("b", ${quoted(called)})`);
  const pid = await pidIn(join(serving.repository, "a", "pid"));
  await left("b", "began");
  process.kill(pid, "SIGKILL");
  assert.match(errorOf(await pending, 500), /Stub process 'a_0_0' is not healthy/);
  assert.equal(await left("b", "told"), "so");
  await until("the instance runs again", async () => (await runCode(port, "a", "out = 1")).status === 200);
});

test("a client that disconnects cancels the call, and the called model is notified", async () => {
  const called = `leave("waits", "")\nwhile not request.is_cancelled(): time.sleep(0.01)\nleave("ended", "by its caller")`;
  const client = new AbortController();
  const pending = runCode(port, "a", `leave("heard", call("b", ${quoted(called)}))`, client.signal);
  await left("b", "waits");
  client.abort();
  await assert.rejects(pending);
  assert.equal(await left("b", "ended"), "by its caller");
  assert.match(await left("a", "heard"), /cancelled/);
});

test("a model that is unloaded during a call responds first, and is not ready afterwards", async () => {
  const pending = outputOfCode(port, "a", `out = call("c", ${quoted(`leave("called", "")${waitFor("go")}\nout = 3`)})`);
  await left("c", "called");
  assert.equal((await unload(port, "c")).status, 200);
  await allow("c", "go");
  assert.equal(await pending, "[[b'3']]");
  await until("c is unloaded", async () =>
    /is not ready/.test(await outputOfCode(port, "a", 'out = call("c", "out = 1")')),
  );
  assert.equal((await load(port, "c")).status, 200);
  assert.equal(await outputOfCode(port, "a", 'out = call("c", "out = 1")'), "[[b'1']]");
});

test("a called model that hangs is ended by its unload, and its caller gets an error", async () => {
  const pending = outputOfCode(
    port,
    "a",
    `out = call("c", ${quoted(`leave("hangs", "")\nwhile True: time.sleep(1)`)})`,
  );
  await left("c", "hangs");
  assert.equal((await unload(port, "c")).status, 200);
  assert.equal(await pending, "error: model 'c' version 1 was ended while it executed: its unload waited for 5 s");
  assert.equal((await load(port, "c")).status, 200);
});

test("a model may load and unload others, and unload itself, while it executes", async () => {
  const code =
    'pb_utils.unload_model("c"); pb_utils.load_model("c"); out = call("c", "out = 2"); pb_utils.unload_model("a")';
  assert.equal(await outputOfCode(port, "a", code), "[[b'2']]");
  await until("it is unloaded", async () => (await runCode(port, "a", "out = 1")).status !== 200);
  assert.equal((await load(port, "a")).status, 200);
});

test("a called model does not see later changes of its input tensor", async () => {
  const reads = `time.sleep(0.3); out = value.as_numpy().tolist()[:2], int(value.as_numpy().sum())`;
  const code = `import asyncio
array = np.ones(100000, np.int32)
tensor = pb_utils.Tensor("VALUE", array)
call_it = asked("b", ${quoted(reads)}); call_it._inputs.append(tensor)
async def both():
    task = asyncio.ensure_future(call_it.async_exec())
    await asyncio.sleep(0.1)
    array[:] = 5
    return shown(await task)
out = asyncio.new_event_loop().run_until_complete(both())`;
  assert.equal(await outputOfCode(port, "a", code), "[[b'([1, 1], 100000)']]");
});

test("a model owns the responses of its calls, also those that it passes on unread", async () => {
  const makes = 'given = pb_utils.Tensor("VALUE", np.full(50000, 4, np.int32)); model.kept = given.as_numpy()';
  const spoils = "array = value.as_numpy(); out = int(array.sum()); array[:] = 9; model.kept = array";
  const code = `made = asked("b", ${quoted(makes)}, outputs=["VALUE"]).exec().output_tensors()[0]
sums = []
for _ in range(3):
    again = asked("c", ${quoted(spoils)}); again._inputs.append(made); sums += shown(again.exec())
out = sums, int(made.as_numpy().sum())
made.as_numpy()[:] = 0
out = out + (int(asked("b", "out = 1", outputs=["OUT"]).exec().has_error()),)`;
  assert.equal(await outputOfCode(port, "a", code), "([[b'200000'], [b'200000'], [b'200000']], 200000, 0)");
});

test("responses that exceed the arena fail their call", async () => {
  const makes = 'given = pb_utils.Tensor("VALUE", np.broadcast_to(np.int32(1), 2**36))';
  assert.match(await outputOfCode(port, "a", `out = call("b", ${quoted(makes)}, outputs=["VALUE"])`), /^error: .*/);
  assert.match(
    await outputOfCode(port, "a", `out = call("b", "out = 1", np.zeros(2**31, np.int32))`),
    /^error: .*bytes/,
  );
  assert.equal(await outputOfCode(port, "a", 'out = call("b", "out = 1")'), "[[b'1']]");
});

test("ten thousand calls with unread responses leave nothing behind", async () => {
  const code = `import asyncio
async def many():
    tasks = [asyncio.ensure_future(asked("b", "given = pb_utils.Tensor('VALUE', np.ones(2000, np.int32))", outputs=["VALUE"]).async_exec()) for _ in range(10000)]
    await asyncio.sleep(0)
    for task in tasks: task.cancel()
loop = asyncio.new_event_loop()
loop.run_until_complete(many()); loop.close()
out = "made"`;
  assert.equal(await outputOfCode(port, "a", code), "made");
  assert.equal(await outputOfCode(port, "a", 'out = call("b", "out = 1")'), "[[b'1']]");
});

test("coroutines that are cancelled while they wait for a call wake the other waiting coroutines", async () => {
  const code = `import asyncio
most = 256
async def crowd():
    first = [asyncio.ensure_future(asked("b", ${quoted(`leave("crowded", "")${waitFor("crowd")}\nout = 1`)}).async_exec())]
    first += [asyncio.ensure_future(asked("b", "out = 1").async_exec()) for _ in range(most - 1)]
    waiting = [asyncio.ensure_future(asked("b", "out = 1").async_exec()) for _ in range(2 * most)]
    await asyncio.sleep(0.05)
    for task in reversed(waiting[most:]):
        task.cancel()
        for _ in range(4): await asyncio.sleep(0)
    leave("cancelled", "")
    return len(await asyncio.wait_for(asyncio.gather(*first, *waiting[:most]), 20))
out = asyncio.new_event_loop().run_until_complete(crowd())`;
  const pending = outputOfCode(port, "a", code);
  await left("b", "crowded");
  await left("a", "cancelled");
  await allow("b", "crowd");
  assert.equal(await pending, "512");
});

test("unread streams are bounded, and end when they are dropped", async () => {
  const says = quoted("for i in range(1000): sender.send(answer(i))\nsender.send(flags=FINAL)");
  const one = `pb_utils.InferenceRequest(model_name="streams", inputs=[pb_utils.Tensor("CODE", np.array([${says}.encode()], object))], requested_output_names=["OUT"]).exec(decoupled=True)`;
  const code = `held = []
try:
    while True: held.append(${one})
except pb_utils.TritonModelException as error:
    out = len(held), str(error)[:30]
held.clear()`;
  assert.equal(await outputOfCode(port, "a", code), "(256, '256 calls of decoupled models ')");
  const sum = `out = sum(1 for each in ${one})`;
  assert.equal(await outputOfCode(port, "a", sum), "1001");
});

test("a decoupled model calls others, in execute and from its threads", async () => {
  const call = `pb_utils.InferenceRequest(model_name="b", inputs=[pb_utils.Tensor("CODE", np.array([b"out = 4"], object))], requested_output_names=["OUT"])`;
  const work = `def work():
    for _ in range(50): sender.send(answer(${call}.exec().output_tensors()[0].as_numpy()[0].decode()))
    sender.send(flags=FINAL)
`;
  for (const how of ["work()", "threading.Thread(target=work).start()"])
    assert.equal(
      await outputOfCode(
        port,
        "a",
        `each = [shown(one) for one in asked("streams", ${quoted(work + how)}).exec(decoupled=True)]; out = len(each), each[0], each[-1]`,
      ),
      "(51, [[b'4']], [])",
    );
});

test("coroutines of models, decoupled or not, await other models side by side", async () => {
  const program = (decoupled: boolean) => `import asyncio
import numpy as np
import triton_python_backend_utils as pb_utils

def asked(seconds):
    code = np.array([b"import time; time.sleep(%f); out = 6" % seconds], object)
    return pb_utils.InferenceRequest(model_name="pair", inputs=[pb_utils.Tensor("CODE", code)], requested_output_names=["OUT"])

class TritonPythonModel:
    async def execute(self, requests):
        answers = await asyncio.gather(*[asked(0.002).async_exec() for _ in range(300)])
        text = "%d %s" % (len(answers), {each.output_tensors()[0].as_numpy()[0] for each in answers})
        made = [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text], object))]) for _ in requests]
        ${decoupled ? "for request, one in zip(requests, made): request.get_response_sender().send(one, 1)" : "return made"}
`;
  await writeCallingModel(serving.repository, "awaits", { text: program(false) });
  await writeCallingModel(serving.repository, "awaits_more", { text: program(true), decoupled: true });
  for (const name of ["awaits", "awaits_more"]) assert.equal((await load(port, name)).status, 200);
  assert.equal(await outputOfCode(port, "awaits", ""), "300 {b'6'}");
  const both = `[shown(one) for _ in range(2) for one in asked("awaits_more", "").exec(decoupled=True)]`;
  assert.equal(await outputOfCode(port, "a", `out = ${both}`), `[[[b"300 {b'6'}"]], [[b"300 {b'6'}"]]]`);
});

test("threads of a model call, also when no execution runs", async () => {
  const code = `def work():
    leave("thread", call("b", "out = 8"))
threading.Timer(0.2, work).start()
results = []
threads = [threading.Thread(target=lambda: results.append(call("b", "out = 1"))) for _ in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
out = len(results), results[0]`;
  assert.equal(await outputOfCode(port, "a", code), "(20, [[b'1']])");
  assert.equal(await left("a", "thread"), "[[b'8']]");
  assert.equal(await outputOfCode(port, "a", "out = 1"), "1");
});

test("the first call of a model may come from a thread while its model waits for requests", async () => {
  await writeCallingModel(serving.repository, "fresh");
  assert.equal((await load(port, "fresh")).status, 200);
  await outputOfCode(port, "fresh", 'threading.Timer(0.2, lambda: leave("first", call("b", "out = 8"))).start()');
  assert.equal(await left("fresh", "first"), "[[b'8']]");
  assert.equal(await outputOfCode(port, "fresh", "out = 1"), "1");
});

test("a model that makes calls gets one execution at a time, and loses none when it dies", async () => {
  const pending = Array.from({ length: 6 }, (_, index) =>
    runCode(port, "a", `time.sleep(0.05); out = call("b", "out = ${index}")`),
  );
  await runCode(port, "a", "import os; os.kill(os.getpid(), 9)");
  const responses = await Promise.all(pending);
  assert.ok(responses.filter(({ status }) => status !== 200).length <= 1);
  assert.equal(processesMarked(serving.mark).length > 0, true);
});
