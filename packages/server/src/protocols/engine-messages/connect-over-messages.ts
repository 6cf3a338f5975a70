import { MessageChannel, receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { Engine } from "../../engine/index.ts";
import { EngineMessageServer } from "./engine-message-server.ts";
import { EngineMessageClient } from "./engine-message-client.ts";
import type { ToEngine, ToFrontEnd } from "./messages.ts";

/** An engine that is called through messages, as a protocol in another thread calls it. */
export interface MessageConnectedEngine {
  readonly engine: Engine;
  /** Number of resources that the client has not released or completed: leases, blocks, requests, calls. */
  readonly openCount: number;
}

/**
 * Connects an engine to a client through messages, for tests. All messages go through the ports of a MessageChannel, so they must be plain
 * data and arrive as copies. Arenas are memory that both sides have mapped. Both sides run in this thread. A message is handled before
 * `postMessage` returns, so that synchronous calls have their results.
 */
export function connectOverMessages(engine: Engine): MessageConnectedEngine {
  const { port1: frontPort, port2: enginePort } = new MessageChannel();
  const engineSide = new EngineMessageServer(engine, (message) => {
    enginePort.postMessage(message, []);
    drain(frontPort, (arrived) => frontEndSide.handle(arrived as ToFrontEnd));
  });
  const frontEndSide = new EngineMessageClient({
    post: (message) => {
      frontPort.postMessage(message, []);
      drain(enginePort, (arrived) => engineSide.handle(arrived as ToEngine));
    },
    bytesAt: (location) => engineSide.lent.bytesAt(location),
  });
  return {
    engine: frontEndSide,
    get openCount() {
      return engineSide.openCount;
    },
  };
}

/** Returns a subject of the engine's contract tests whose engine is called through messages. */
export function subjectOverMessages<Subject extends { readonly engine: Engine }>(subject: Subject): Subject {
  return { ...subject, engine: connectOverMessages(subject.engine).engine };
}

function drain(port: MessagePort, handle: (message: unknown) => void): void {
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
    handle(next.message);
}
