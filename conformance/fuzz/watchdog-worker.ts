/** The thread of `watchdog.ts`. */
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";

const { state, hint, inputMsMax } = workerData as {
  readonly state: Int32Array<SharedArrayBuffer>;
  readonly hint: string;
  readonly inputMsMax: number;
};

let seen = Atomics.load(state, 1);
for (;;) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, inputMsMax);
  const started = Atomics.load(state, 1);
  if (started === seen && started > 0) {
    writeSync(2, `fuzz: an input has not ended after ${inputMsMax} ms; ${hint} --path=${Atomics.load(state, 0)}\n`);
    process.kill(process.pid, "SIGKILL");
  }
  seen = started;
}
