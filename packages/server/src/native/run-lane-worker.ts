import { parentPort, workerData } from "node:worker_threads";
import { InferenceError } from "@galatea/base";
import { openOrtLibrary } from "./onnxruntime-api.ts";
import { type MadeResult, RunCaller } from "./onnxruntime-call.ts";
import { pinThread, receiveBlocking, sendBlocking } from "@galatea/base/system";
import { frameBytesOf, FrameWriter, type LaneAnswer, type LaneOrder, readOrder, wordBytes } from "./run-wire.ts";

/**
 * The start options of a run lane (run-lane.ts), a thread that waits for an order at its socket, calls the library, and sends the result.
 */
export interface RunLaneData {
  readonly libraryPath: string;
  /** The lane's end of a socket pair. Closed when the thread has ended in any way. */
  readonly fd: number;
}

/** The message of a lane that is ready: the OrtRunOptions of its runs. */
export interface RunLaneReady {
  readonly options: readonly bigint[];
}

const { libraryPath, fd } = workerData as RunLaneData;
const { api } = openOrtLibrary(libraryPath);
const caller = new RunCaller(api);
const writer = new FrameWriter();
let buffer = new Uint8Array(64 * 1024);

/** Returns the next order; null when the peer is gone. */
function nextOrder(): LaneOrder | null {
  let have = 0;
  let wanted = wordBytes;
  while (have < wanted) {
    const received = receiveBlocking(fd, have === 0 ? buffer : buffer.subarray(have));
    if (received === 0) return null;
    have += received;
    if (have < wordBytes) continue;
    wanted = frameBytesOf(new Float64Array(buffer.buffer, 0, 1)[0]!);
    if (wanted > buffer.byteLength) {
      const grown = new Uint8Array(wanted);
      grown.set(buffer.subarray(0, have));
      buffer = grown;
    }
  }
  return readOrder(new Float64Array(buffer.buffer, 0, wanted / wordBytes));
}

function answer(what: LaneAnswer): boolean {
  return sendBlocking(fd, writer.answer(what));
}

/** Executes an order; returns whether the peer is still there. */
function serve(order: LaneOrder): boolean {
  if (order.kind !== "run") throw new Error(`an order to ${order.kind} the outputs of an unknown run`);
  if (order.processors.length > 0) pinThread(order.processors);
  try {
    let results: readonly MadeResult[];
    try {
      results = caller.run(order);
    } catch (error) {
      return answer({ kind: "failed", message: InferenceError.from(error).message });
    }
    if (results.every(({ isPlaced }) => isPlaced)) return answer({ kind: "done", results });
    if (!answer({ kind: "unplaced", results })) return false;
    const next = nextOrder();
    if (next === null) return false;
    if (next.kind === "place") caller.place(next.addresses);
    return answer({ kind: "done", results });
  } finally {
    caller.end();
  }
}

parentPort!.postMessage({ options: [caller.plainOptions, caller.shrinkingOptions] } satisfies RunLaneReady, []);
for (;;) {
  const order = nextOrder();
  if (order === null || !serve(order)) break;
}
