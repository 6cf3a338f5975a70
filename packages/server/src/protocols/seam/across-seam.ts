import { MessageChannel, receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { Engine } from "../../engine/index.ts";
import { EngineSide } from "./engine-side.ts";
import { FrontEndSide } from "./front-end-side.ts";
import type { ToEngine, ToFrontEnd } from "./messages.ts";

/** An engine as a front end in another thread would see it. */
export interface AcrossSeam {
  readonly engine: Engine;
  /** What the front end has not given back, or seen the end of: leases, blocks, requests, calls. */
  readonly openCount: number;
}

/**
 * Puts the seam between front ends and the engine to the test: all that crosses goes as messages through the ports of a MessageChannel,
 * which take plain data alone, and arrives as a copy; arenas are what both sides have mapped. Both sides share this thread, and a message
 * is handled before `postMessage` returns, so that a front end's questions are answered in their place.
 */
export function acrossSeam(engine: Engine): AcrossSeam {
  const { port1: frontPort, port2: enginePort } = new MessageChannel();
  const engineSide = new EngineSide(engine, (message) => {
    enginePort.postMessage(message, []);
    drain(frontPort, (arrived) => frontEndSide.handle(arrived as ToFrontEnd));
  });
  const frontEndSide = new FrontEndSide({
    post: (message) => {
      frontPort.postMessage(message, []);
      drain(enginePort, (arrived) => engineSide.handle(arrived as ToEngine));
    },
    bytesAt: (place) => engineSide.lent.bytesAt(place),
  });
  return {
    engine: frontEndSide,
    get openCount() {
      return engineSide.openCount;
    },
  };
}

/** A subject of the Engine contract's suite, its engine reached across the seam. */
export function subjectAcrossSeam<Subject extends { readonly engine: Engine }>(subject: Subject): Subject {
  return { ...subject, engine: acrossSeam(subject.engine).engine };
}

function drain(port: MessagePort, handle: (message: unknown) => void): void {
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
    handle(next.message);
}
