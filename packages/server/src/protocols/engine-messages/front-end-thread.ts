/** A front-end thread for tests: serves HTTP with an engine in another thread. */
import { receiveMessageOnPort, workerData, type MessagePort } from "node:worker_threads";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import type { ArenaRange } from "../../tensor/index.ts";
import { usualHttpLimits } from "../http-listener/limits-fixture.ts";
import { openKserveHttp } from "../kserve-http/kserve-listener.ts";
import { EngineMessageClient } from "./engine-message-client.ts";
import type { ToEngine, ToFrontEnd } from "./messages.ts";
import { HandledMessageCount } from "./handled-message-count.ts";

export interface FrontEndThreadData {
  readonly port: MessagePort;
  readonly turns: SharedArrayBuffer;
  /** Memory of the only arena, which both threads use. */
  readonly memory: SharedArrayBuffer;
}

const { port, turns: turnsMemory, memory } = workerData as FrontEndThreadData;
const handled = new HandledMessageCount(turnsMemory);
const questions: ReadonlySet<ToEngine["kind"]> = new Set(["state", "open", "arena", "allocate"]);
const plainQuestions = new Set(["serverMetadata", "modelMetadata", "statistics", "memory"]);
let sentCount = 0;

const engine = new EngineMessageClient({
  post: (message) => {
    port.postMessage(message, []);
    sentCount++;
    if (!questions.has(message.kind) && !(message.kind === "call" && plainQuestions.has(message.method))) return;
    handled.wait(sentCount);
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
      engine.handle(next.message as ToFrontEnd);
  },
  bytesAt: ({ byteOffset, byteLength }: ArenaRange) => new Uint8Array(memory, byteOffset, byteLength),
});

const listener = await openKserveHttp({
  engine,
  clock: systemClock,
  limits: usualHttpLimits,
  restrictions: new Map(),
  address: { host: "127.0.0.1", port: 0 },
  logger: silentLogger,
  budget: new ByteBudget(2 ** 30),
});
port.on("message", (message: { readonly stop: true } | ToFrontEnd) => {
  if (!("stop" in message)) return engine.handle(message);
  void listener.close(AbortSignal.abort()).then(() => port.close());
});
port.postMessage({ listening: listener.port }, []);
