/** Code of a model or an interpreter that writes to its worker's socket, in every state of the worker. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { InferenceError, systemClock, type Clock } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import {
  infer,
  echo,
  floats,
  floatsOf,
  model,
  oneInOneOut,
  only,
  openFixture,
  request,
  until,
} from "./python-fixture.ts";
import type { PythonFixture } from "./python-fixture.ts";

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture();
});

after(() => fixture[Symbol.asyncDispose]());

/** Sends `frame` and waits until the process is killed, in the function that `AT` names. */
function hostileModel(at: string, frame: string): string {
  return `import struct, time
import numpy as np
import triton_python_backend_utils as pb_utils
from galatea_worker import current_worker

def frame(kind, body, count=0, number=0, extra=0):
    return struct.pack("<IHHII", 16 + len(body), kind, count, number, extra) + body

def attack(at, execution=0):
    if at == "${at}":
        current_worker._worker.channel._socket.sendall(${frame})
        time.sleep(60)

attack("load")

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        attack("complete")
        return config

    def initialize(self, args):
        attack("initialize")

    def execute(self, requests):
        attack("execute", requests[0]._request_key[0])
        ${echo}

    def finalize(self):
        attack("finalize")
`;
}

const frames: readonly [what: string, frame: string][] = [
  ["a LOG whose message is an object", `frame(72, b'{"message":{"toString":1}}')`],
  ["a LOG a million deep", `frame(72, b'{"message":' + b"[" * 1000000 + b"]" * 1000000 + b"}")`],
  ["a failure that is not a string", `frame(74, b'{"message":{}}')`],
  ["a SPACE_REQUEST of 2^52 bytes, without end", `frame(70, struct.pack("<Q", 2**52), 1, execution) * 50`],
  [
    "a result whose parameters are null",
    `frame(69, struct.pack("<IIIIQQQ", 0, 80, 0, 0, 1, 1, 1) + struct.pack("<HHII", 0, 0, 4, 0) + b"null" + bytes(8), 1, execution)`,
  ],
  ["a frame of 4 GiB", `struct.pack("<IHHII", 2**32 - 1, 69, 0, 0, 0)`],
];
const malformed = /malformed record from a worker/;

for (const [what, frame] of frames) {
  test(`${what}, sent in each state of a worker, terminates that worker and affects no other model`, async () => {
    await using neighbour = await fixture.load("neighbour", model(echo));
    for (const at of ["load", "complete", "initialize"]) {
      const isNoFailure = what.startsWith("a failure") ? /malformed|\[object|undefined|null/ : malformed;
      await assert.rejects(fixture.load(`hostile_${at}`, hostileModel(at, frame)), { message: isNoFailure });
    }
    await using executes = await fixture.load("hostile_execute", hostileModel("execute", frame));
    const { outcomes } = await only(executes).execute([request([floats("IN", [1])])]);
    assert.match((outcomes[0] as InferenceError).message, malformed);
    const finalizes = await fixture.load("hostile_finalize", hostileModel("finalize", frame));
    await finalizes[Symbol.asyncDispose]();
    assert.deepEqual(floatsOf((await infer(neighbour, [floats("IN", [1, 2])])).outputs[0]!), [1, 2]);
    await until(() => fixture.arena.usedBytes === 0);
  });
}

/** An interpreter that sends scripted frames instead of acting as a zygote. It sends `responses` for each frame that it receives. */
async function interpreter(directory: string, ready: string, responses: string): Promise<string> {
  const path = join(directory, "python");
  const program = `#!/usr/bin/env python3
import array, json, os, socket, struct, sys, time
def frame(kind, body=b"", count=0, number=0, extra=0):
    return struct.pack("<IHHII", 16 + len(body), kind, count, number, extra) + body
good = dict(pid=os.getpid(), python="3.11.0", numpy="2", threads=1, failed=[], unconfined=None)
control = socket.socket(fileno=3)
control.sendall(${ready})
while True:
    data, ancillary, _, _ = control.recvmsg(4096, socket.CMSG_SPACE(64 * 4))
    if not data: break
    for _, _, payload in ancillary:
        for descriptor in array.array("i", payload): os.close(descriptor)
    family = struct.unpack_from("<IHHII", data)[3]
    control.sendall(${responses})
`;
  await writeFile(path, program);
  await chmod(path, 0o755);
  return path;
}

const isReady = "frame(193, json.dumps(good).encode())";
const zygotes: readonly [what: string, ready: string, answer: string, told: RegExp][] = [
  ["whose first frame is no JSON", "frame(193, b'{')", "b''", /cannot be used/],
  ["whose first frame is of another kind", "frame(194, b'', 0, 1, 1)", "b''", /cannot be used/],
  ["whose facts are null", "frame(193, b'null')", "b''", /cannot be used/],
  [
    "whose list of failures is a number",
    "frame(193, json.dumps(dict(good, failed=7)).encode())",
    "b''",
    /cannot be used/,
  ],
  [
    "that nests its facts a million deep",
    `frame(193, b'{"a":' + b'[' * 1000000 + b']' * 1000000 + b'}')`,
    "b''",
    /cannot be/,
  ],
  ["that announces 4 GiB", "struct.pack('<I', 2**32 - 1) + bytes(12)", "b''", /cannot be used/],
  [
    "that names the first process of the machine as its worker",
    isReady,
    "frame(194, b'', 0, family, 1)",
    /before it started/,
  ],
  ["that names itself as its worker", isReady, "frame(194, b'', 0, family, os.getpid())", /before it started/],
  ["that names its server as its worker", isReady, "frame(194, b'', 0, family, os.getppid())", /before it started/],
  [
    "that responds with a frame of an unknown kind",
    isReady,
    "frame(7, b'', 0, family, 0)",
    /the Python zygote has ended/,
  ],
  [
    "that fails with 60 MB of reasons",
    isReady,
    "frame(195, b'x' * 60000000, 0, family, 0)",
    /cannot fork a Python worker: x/,
  ],
];

for (const [what, ready, response, pattern] of zygotes) {
  test(`a zygote ${what} fails the load, and is terminated with its backend`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "galatea-zygote-"));
    try {
      await using separate = await openFixture({ python: await interpreter(directory, ready, response) });
      await assert.rejects(separate.load("any", model(echo), oneInOneOut()), (error) => {
        assert.ok(error instanceof InferenceError);
        assert.match(error.message, pattern);
        assert.ok(error.message.length < 10_000);
        return true;
      });
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
}

/** The system's clock, with timers whose delays are divided by `times`. */
const hastyClock = (times: number): Clock => ({
  ...systemClock,
  timer: (delayMs, fire) => systemClock.timer(delayMs / times, fire),
});
const hangs = "(open(sys.argv[0] + '-hangs', 'w').close(), time.sleep(600), b'')[2]";

for (const [what, ready, response, pattern, times] of [
  ["to start", hangs, "b''", /the Python environment .* cannot be used \(signal SIGKILL\)/, 1000],
  ["to fork", isReady, hangs, /the Python zygote has ended/, 100],
] as const) {
  test(`a zygote that takes too long ${what} is terminated, and its load fails`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "galatea-zygote-"));
    try {
      await using separate = await openFixture({
        clock: hastyClock(times),
        python: await interpreter(directory, ready, response),
      });
      await assert.rejects(separate.load("any", model(echo), oneInOneOut()), { message: pattern });
      assert.ok(separate.log.some((line) => /was not ready within 300 s|did not fork within 30 s/.test(line)));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  test(`a backend whose zygote hangs ${what} closes at once and rejects its waiting loads`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "galatea-zygote-"));
    try {
      const separate = await openFixture({ python: await interpreter(directory, ready, response) });
      const waiting = assert.rejects(separate.load("any", model(echo), oneInOneOut()), { code: "UNAVAILABLE" });
      await eventually(() => existsSync(join(directory, "python-hangs")));
      await separate[Symbol.asyncDispose]();
      await waiting;
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
}
