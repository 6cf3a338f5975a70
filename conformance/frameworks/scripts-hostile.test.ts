import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { ensureFramework } from "../environments/index.ts";
import { ScriptServer } from "./script-server.ts";

const json = { "Content-Type": "application/json" };
const echo = "def model_fn(d): return None\ndef transform_fn(m, data, ct, accept): return data\n";
let server: ScriptServer;
let wheels: string;

const writeWheel = `import sys, zipfile
info = "tiny_extra-1.0.dist-info/"
with zipfile.ZipFile(sys.argv[1] + "/tiny_extra-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tiny_extra.py", "value = 42")
    wheel.writestr("tiny_extra.pth", "import os; os.makedirs('" + sys.argv[1] + "/ran', exist_ok=True)")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tiny-extra\\nVersion: 1.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "tiny_extra.py,,\\ntiny_extra.pth,,\\n" + info + "METADATA,,\\n" + info + "WHEEL,,\\n" + info + "RECORD,,\\n")
`;

before(async () => {
  const { python } = await ensureFramework("sklearn");
  wheels = await mkdtemp(join(tmpdir(), "galatea-wheels-"));
  await promisify(execFile)(python, ["-c", writeWheel, wheels]);
  server = await ScriptServer.open("scikit-learn", {
    SAGEMAKER_MODEL_SERVER_TIMEOUT: "3",
    PIP_NO_INDEX: "1",
    PIP_FIND_LINKS: wheels,
  });
  assert.equal((await server.load("neighbour", { "code/inference.py": echo })).status, 200);
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await rm(wheels, { recursive: true });
});

const neighbourServes = async () => {
  const { status, contentType, body } = await server.invoke("neighbour", "[1]", json);
  assert.deepEqual([status, contentType, body], [200, "application/json", "[1]"]);
};

test("an input_fn that never returns loses its worker at the toolkit's time-out, and the model responds again", async () => {
  const script =
    "def model_fn(d): return None\ndef input_fn(data, ct):\n    while data == 'loop': pass\n    return data\n" +
    "def predict_fn(data, m): return data\ndef output_fn(p, accept): return p\n";
  assert.equal((await server.load("endless", { "code/inference.py": script })).status, 200);
  const looped = await server.invoke("endless", "loop", json);
  assert.equal(looped.status >= 500, true, JSON.stringify(looped));
  await neighbourServes();
  assert.equal((await server.invoke("endless", "again", json)).body, "again");
});

test("an output of gigabytes is a response or an error of that request only, and no process dies", async () => {
  const script =
    "def model_fn(d): return None\ndef transform_fn(m, data, ct, accept): return b'x' * (1 << int(data))\n";
  assert.equal((await server.load("large", { "code/inference.py": script })).status, 200);
  assert.equal((await server.invoke("large", "20", json)).body.length, 2 ** 20);
  const huge = await server.invoke("large", "32", json);
  assert.equal(huge.status >= 500, true, String(huge.status));
  await neighbourServes();
  assert.equal((await server.invoke("large", "10", json)).body.length, 1024);
});

test("a script cannot read another model's files or write its own archive, and does not run as root", async () => {
  const script = `
import json, os, sys
def model_fn(model_dir): return model_dir
def tried(step):
    try:
        return step()
    except OSError as error:
        return type(error).__name__
def transform_fn(model_dir, data, ct, accept):
    neighbour = model_dir.replace("curious", "neighbour")
    return json.dumps({
        "user": os.getuid() == 0,
        "neighbour": tried(lambda: open(os.path.join(neighbour, "code", "inference.py")).read()),
        "own": tried(lambda: open(os.path.join(model_dir, "code", "inference.py"), "w").close()),
        "library": tried(lambda: open(os.path.join(os.path.dirname(sys.modules["galatea_worker"].__file__), "x.py"), "w").close()),
        "packages": tried(lambda: open(os.path.join(os.path.dirname(sys.modules["sklearn"].__file__), "x.py"), "w").close()),
    })
`;
  assert.equal((await server.load("curious", { "code/inference.py": script })).status, 200);
  const { body } = await server.invoke("curious", "{}", json);
  const seen = JSON.parse(body) as Record<string, unknown>;
  assert.equal(seen["user"], false, body);
  for (const what of ["neighbour", "own", "library", "packages"])
    assert.match(String(seen[what]), /^(PermissionError|FileNotFoundError|OSError)$/, `${what}: ${body}`);
});

test("exceptions, exits and invalid scripts fail only their own request or load", async () => {
  const raises =
    "def model_fn(d): return None\ndef transform_fn(m, d, c, a):\n    class E(Exception):\n        def __str__(self): raise KeyError('x')\n    raise E()\n";
  assert.equal((await server.load("raises", { "code/inference.py": raises })).status, 200);
  assert.equal((await server.invoke("raises", "1", json)).status, 500);
  const typed = "def model_fn(d): return None\ndef transform_fn(m, d, c, a): return 'x', 'text/plain\\r\\nX-Evil: 1'\n";
  assert.equal((await server.load("typed", { "code/inference.py": typed })).status, 200);
  assert.equal((await server.invoke("typed", "1", json)).body, "x");
  const exits = "import os\ndef model_fn(d): return None\ndef transform_fn(m, d, c, a): os._exit(3)\n";
  assert.equal((await server.load("exits", { "code/inference.py": exits })).status, 200);
  assert.equal((await server.invoke("exits", "1", json)).status >= 500, true);
  const broken = await server.load("broken", { "code/inference.py": "def model_fn(:\n" });
  assert.deepEqual([broken.status, /SyntaxError/.test(broken.body)], [400, true], broken.body);
  const both = "def model_fn(d): pass\ndef transform_fn(m, d, c, a): pass\ndef input_fn(d, c): pass\n";
  assert.match(
    (await server.load("both", { "code/inference.py": both })).body,
    /Cannot use transform_fn implementation/,
  );
  assert.match((await server.load("none", { "code/other.py": "" })).body, /Please provide a model_fn implementation/);
  await neighbourServes();
});

test("a pickled array in a request runs no code", async () => {
  const script = "def model_fn(d): return None\ndef predict_fn(data, m): return data\n";
  assert.equal((await server.load("arrays", { "code/inference.py": script })).status, 200);
  const { python } = await ensureFramework("sklearn");
  const program =
    "import sys, numpy; numpy.save(sys.stdout.buffer, numpy.array([{}], dtype=object), allow_pickle=True)";
  const { stdout } = await promisify(execFile)(python, ["-c", program], { encoding: "buffer" });
  const reply = await server.invoke("arrays", stdout, { "Content-Type": "application/x-npy" });
  assert.deepEqual([reply.status, /allow_pickle=False/.test(reply.body)], [500, true], reply.body);
});

test("packages of requirements.txt are visible only to their model and run nothing outside of its sandbox; other lines fail the load", async () => {
  const script =
    "import tiny_extra\ndef model_fn(d): return None\ndef transform_fn(m, d, c, a): return str(tiny_extra.value)\n";
  const requested = { "code/inference.py": script, "code/requirements.txt": "tiny-extra==1.0\n" };
  const loaded = await server.load("extra", requested);
  assert.equal(loaded.status, 200, loaded.body);
  assert.equal((await server.invoke("extra", "1", json)).body, "42");
  assert.equal(await stat(join(wheels, "ran")).catch(() => null), null, "the package's .pth ran");
  const without = await server.load("without", { "code/inference.py": script });
  assert.match(without.body, /No module named 'tiny_extra'/);
  for (const line of ["-r /etc/passwd", "tiny-extra @ file:///etc", "--index-url http://127.0.0.1:9/"]) {
    const id = `bad${line.length}`;
    const refused = await server.load(id, { "code/inference.py": echo, "code/requirements.txt": line });
    assert.match(refused.body, /requirements\.txt cannot be installed: line 1/, refused.body);
  }
  const absent = await server.load("absent", { "code/inference.py": echo, "code/requirements.txt": "no-such-package" });
  assert.match(absent.body, /the packages no-such-package cannot be installed/);
  await neighbourServes();
});

test("the container's PYTHONPATH applies to its models, and its code runs only inside their sandbox", async () => {
  const directory = await mkdtemp(join(tmpdir(), "galatea-python-path-"));
  const ran = join(directory, "ran");
  await writeFile(join(directory, "sitecustomize.py"), `open(${JSON.stringify(ran)}, "w").close()`);
  try {
    await using server = await ScriptServer.open("scikit-learn", { PYTHONPATH: directory });
    const script =
      "import sys\ndef model_fn(d): return None\ndef transform_fn(m, d, c, a): return ' '.join(sys.path)\n";
    assert.equal((await server.load("paths", { "code/inference.py": script })).status, 200);
    assert.ok((await server.invoke("paths", "1", json)).body.split(" ").includes(directory));
    assert.equal(await stat(ran).catch(() => null), null, "sitecustomize.py ran");
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a further script model is a fork with less than 30 MB of private memory", async () => {
  const loads: number[] = [];
  for (let index = 0; index < 10; index++) {
    const began = performance.now();
    assert.equal((await server.load(`further${index}`, { "code/inference.py": echo })).status, 200);
    loads.push(performance.now() - began);
  }
  const { stdout } = await promisify(execFile)("ps", ["-e", "-ww", "-o", "pid=,args="]);
  const pid = stdout
    .split("\n")
    .find((line) => line.includes("models/further9/model)"))
    ?.trim()
    .split(" ")[0];
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  const own = [...rollup.matchAll(/^Private_\w+:\s+(\d+) kB$/gm)].reduce((sum, match) => sum + Number(match[1]), 0);
  const median = loads.sort((a, b) => a - b)[5] ?? 0;
  process.stdout.write(
    `# scikit-learn script: load ${median.toFixed(1)} ms (median of 10), ${(own / 1024).toFixed(1)} MB of private memory\n`,
  );
  assert.ok(own < 30 * 1024, `${own} kB`);
});
