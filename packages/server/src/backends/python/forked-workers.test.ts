import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { infer, floats, floatsOf, header, only, openFixture, pidOf, type PythonFixture } from "./python-fixture.ts";

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture();
});

after(() => fixture[Symbol.asyncDispose]());

/** A model that returns the values of these expressions, each a number or a boolean. */
function saying(expressions: readonly string[], more = ""): string {
  return `${header}import os, sys, threading\n${more}
class TritonPythonModel:
    def execute(self, requests):
        said = np.array([${expressions.join(", ")}], np.float32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", said)]) for _ in requests]
`;
}

async function said(name: string, text: string): Promise<number[]> {
  await using loaded = await fixture.load(name, text);
  return floatsOf((await infer(loaded, [floats("IN", [0])])).outputs[0]!);
}

test("a worker's one thread is the main thread of its process", async () => {
  const facts = [
    "threading.current_thread() is threading.main_thread()",
    "threading.main_thread().ident == threading.get_ident()",
    "threading.active_count()",
    "threading.main_thread().is_alive()",
  ];
  assert.deepEqual(await said("one_thread", saying(facts)), [1, 1, 1, 1]);
});

test("a process forked by a model has one thread, and no lock held by another thread of the model", async () => {
  const forks = `
leave = threading.Event()
threading.Thread(target=leave.wait, daemon=True).start()

def in_child():
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        current = threading.current_thread() is threading.main_thread()
        os.write(tell, bytes([threading.active_count(), current]))
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(told, 2)
`;
  assert.deepEqual(await said("forks", saying(["threading.active_count()", "*in_child()"], forks)), [2, 1, 1]);
});

test("the zygote's warm-up is visible neither to a model nor in the process list", async () => {
  const facts = [
    'any("warm_up_model" in path for path in sys.path)',
    'any("warm_up_model" in str(getattr(module, "__file__", "")) for module in list(sys.modules.values()))',
    "sys.dont_write_bytecode",
    "len([cls for cls in object.__subclasses__() if cls.__name__ == 'TritonPythonModel'])",
  ];
  await using loaded = await fixture.load("apart", saying(facts));
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [0])])).outputs[0]!), [0, 0, 0, 1]);
  assert.ok(existsSync(join(fixture.directory, "apart/1/__pycache__")));
  const lines = commandLinesBeside(pidOf(loaded));
  assert.ok(lines.some((line) => line.includes("galatea_zygote.py\0")));
  assert.ok(!lines.some((line) => line.includes("warm-up (")));
  assert.ok(only(loaded).name.startsWith("apart_0"));
});

/** Returns the command lines of all processes with the same parent as this process. */
function commandLinesBeside(pid: number): string[] {
  const parentOf = (one: string) => {
    try {
      return readFileSync(`/proc/${one}/stat`, "latin1").split(") ").at(-1)!.split(" ")[1];
    } catch {
      return undefined;
    }
  };
  const parent = parentOf(String(pid));
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === parent)
    .map((name) => readFileSync(`/proc/${name}/cmdline`, "latin1"));
}
