import { workerData } from "node:worker_threads";
import { koffi } from "./koffi.ts";
import { runPrototype } from "./onnxruntime-api.ts";
import { mailboxOf, mailState } from "./run-mailbox.ts";

/** The whole life of a run thread (run-threads.ts): waits for a run in its mailbox, calls the library, says that it has ended. */

export interface RunWorkerData {
  readonly memory: SharedArrayBuffer;
  /** OrtApi's `Run`. */
  readonly runAddress: bigint;
}

const { memory, runAddress } = workerData as RunWorkerData;
const mailbox = mailboxOf(memory);
const run = koffi.decode(runAddress, koffi.proto(...runPrototype)) as (...values: (bigint | number)[]) => bigint | null;
const setAffinity = koffi.load(null).func("int sched_setaffinity(int thread, size_t byteLength, const void *mask)");
/** The calling thread, to sched_setaffinity. */
const self = 0;

for (;;) {
  Atomics.wait(mailbox.state, 0, mailState.empty);
  if (Atomics.load(mailbox.state, 0) === mailState.stop) break;
  // Placement only makes runs faster: where the processors have been taken from us meanwhile, the kernel's choice stands.
  if (mailbox.moves[0] === 1) setAffinity(self, mailbox.processors.byteLength, mailbox.processors);
  const [session, options, inputNames, inputs, inputCount, outputNames, outputCount, outputs] = mailbox.values;
  const status = run(
    session!,
    options!,
    inputNames!,
    inputs!,
    Number(inputCount),
    outputNames!,
    Number(outputCount),
    outputs!,
  );
  mailbox.status[0] = status ?? 0n;
  Atomics.store(mailbox.state, 0, mailState.empty);
  Atomics.store(mailbox.ended, 0, 1);
  Atomics.notify(mailbox.ended, 0);
}
