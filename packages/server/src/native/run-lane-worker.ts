import { parentPort, workerData } from "node:worker_threads";
import { InferenceError } from "@galatea/base";
import { openOrtLibrary } from "./onnxruntime-api.ts";
import { type RunOutputInfo, RunCaller } from "./onnxruntime-call.ts";
import { pinThread, receiveBlocking, sendBlocking } from "@galatea/base/system";
import {
  frameByteLength,
  FrameWriter,
  type LaneResult,
  type LaneCommand,
  readLaneOrder,
  wordBytes,
} from "./run-wire.ts";

/**
 * Start options of a run lane (run-lane.ts): a thread that receives run commands from a socket, calls the library, and sends the results.
 */
export interface RunLaneData {
  readonly libraryPath: string;
  /** The lane's end of a socket pair. The thread closes it when it ends for any reason. */
  readonly fd: number;
}

/** The first message of a lane: it is ready. Contains the addresses of its OrtRunOptions. */
export interface RunLaneReady {
  readonly options: readonly bigint[];
}

const { libraryPath, fd } = workerData as RunLaneData;
const { api } = openOrtLibrary(libraryPath);
const caller = new RunCaller(api);
const writer = new FrameWriter();
let buffer = new Uint8Array(64 * 1024);

/** Returns the next command; null when the peer has closed its socket. */
function nextOrder(): LaneCommand | null {
  let have = 0;
  let wanted = wordBytes;
  while (have < wanted) {
    const received = receiveBlocking(fd, have === 0 ? buffer : buffer.subarray(have));
    if (received === 0) return null;
    have += received;
    if (have < wordBytes) continue;
    wanted = frameByteLength(new Float64Array(buffer.buffer, 0, 1)[0]!);
    if (wanted > buffer.byteLength) {
      const grown = new Uint8Array(wanted);
      grown.set(buffer.subarray(0, have));
      buffer = grown;
    }
  }
  return readLaneOrder(new Float64Array(buffer.buffer, 0, wanted / wordBytes));
}

function answer(what: LaneResult): boolean {
  return sendBlocking(fd, writer.answer(what));
}

/** Executes a command; returns false when the peer has closed its socket. */
function serve(order: LaneCommand): boolean {
  if (order.kind !== "run")
    throw new Error(`protocol error: command '${order.kind}' without a preceding 'run' command`);
  if (order.processors.length > 0) pinThread(order.processors);
  try {
    let results: readonly RunOutputInfo[];
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
