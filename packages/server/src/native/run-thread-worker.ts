import { parentPort, workerData } from "node:worker_threads";
import { InferenceError } from "@galatea/base";
import { openOrtLibrary } from "./onnxruntime-api.ts";
import { type RunOutputInfo, RunCaller } from "./onnxruntime-call.ts";
import { pinThread, receiveBlocking, sendBlocking } from "@galatea/base/system";
import {
  frameByteLength,
  FrameWriter,
  type RunThreadResult,
  type RunThreadCommand,
  readRunThreadCommand,
  wordBytes,
} from "./run-wire.ts";

/**
 * Start options of a run thread (run-thread.ts). The thread receives run commands from a socket, calls the library, and sends the results.
 */
export interface RunThreadData {
  readonly libraryPath: string;
  /** The thread's end of a socket pair. The thread closes it when the thread ends for any reason. */
  readonly fd: number;
}

/** The first message of a run thread, which reports that it is ready. Contains the addresses of its OrtRunOptions. */
export interface RunThreadReady {
  readonly options: readonly bigint[];
}

const { libraryPath, fd } = workerData as RunThreadData;
const { api } = openOrtLibrary(libraryPath);
const caller = new RunCaller(api);
const writer = new FrameWriter();
let buffer = new Uint8Array(64 * 1024);

/** Returns the next command; null when the peer has closed its socket. */
function nextCommand(): RunThreadCommand | null {
  let receivedBytes = 0;
  let neededBytes = wordBytes;
  while (receivedBytes < neededBytes) {
    const received = receiveBlocking(fd, receivedBytes === 0 ? buffer : buffer.subarray(receivedBytes));
    if (received === 0) return null;
    receivedBytes += received;
    if (receivedBytes < wordBytes) continue;
    neededBytes = frameByteLength(new Float64Array(buffer.buffer, 0, 1)[0]!);
    if (neededBytes > buffer.byteLength) {
      const grown = new Uint8Array(neededBytes);
      grown.set(buffer.subarray(0, receivedBytes));
      buffer = grown;
    }
  }
  return readRunThreadCommand(new Float64Array(buffer.buffer, 0, neededBytes / wordBytes));
}

function send(result: RunThreadResult): boolean {
  return sendBlocking(fd, writer.result(result));
}

/** Executes a command; returns false when the peer has closed its socket. */
function execute(command: RunThreadCommand): boolean {
  if (command.kind !== "run")
    throw new Error(`protocol error: command '${command.kind}' without a preceding 'run' command`);
  if (command.processors.length > 0) pinThread(command.processors);
  try {
    let results: readonly RunOutputInfo[];
    try {
      results = caller.run(command);
    } catch (error) {
      return send({ kind: "failed", message: InferenceError.from(error).message });
    }
    if (results.every(({ isPlaced }) => isPlaced)) return send({ kind: "done", results });
    if (!send({ kind: "unplaced", results })) return false;
    const next = nextCommand();
    if (next === null) return false;
    if (next.kind === "place") caller.place(next.addresses);
    return send({ kind: "done", results });
  } finally {
    caller.end();
  }
}

parentPort!.postMessage({ options: [caller.plainOptions, caller.shrinkingOptions] } satisfies RunThreadReady, []);
for (;;) {
  const command = nextCommand();
  if (command === null || !execute(command)) break;
}
