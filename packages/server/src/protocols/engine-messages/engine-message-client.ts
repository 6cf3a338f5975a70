import { assert, InferenceError, unreachable } from "@galatea/base";
import type { Engine, LoadOverride, ModelTarget, NamespaceSource, ServedModel } from "../../engine/index.ts";
import type { ResponseSink, InferenceRequest, InferenceResponse } from "../../inference/index.ts";
import { releaseTensors, type Block, type ArenaRange, type BlockSource } from "../../tensor/index.ts";
import type { Lease, PlainMethod, ServerState, ToEngine, ToFrontEnd } from "./messages.ts";
import { RemoteBlock } from "./remote-block.ts";
import { fromErrorMessage, fromOutcomeMessage, tensorMessage } from "./tensor-messages.ts";

interface Call {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: InferenceError) => void;
}

/** A request that has not completed, with the receiver of its responses. */
interface PendingRequest {
  readonly sink: ResponseSink;
  readonly end: () => void;
}

/** Dependencies of a front end's engine client. */
export interface EngineMessageClientOptions {
  readonly post: (message: ToEngine) => void;
  /** Returns the bytes of an arena range from this thread's own mapping of the arena. */
  readonly bytesAt: (location: ArenaRange) => Uint8Array;
}

/**
 * An Engine that calls the real one, in another thread, through messages. Synchronous methods need a `post` that returns only when the
 * message was handled.
 */
export class EngineMessageClient implements Engine {
  readonly #options: EngineMessageClientOptions;
  readonly #calls = new Map<number, Call>();
  readonly #requests = new Map<number, PendingRequest>();
  #lastId = 0;

  constructor(options: EngineMessageClientOptions) {
    this.#options = options;
  }

  get live(): boolean {
    return this.#state().live;
  }

  get ready(): boolean {
    return this.#state().ready;
  }

  #state(): ServerState {
    return this.#sendRawRequest((callId) => ({ kind: "state", callId })) as ServerState;
  }

  /** Handles a message from the engine. */
  handle(message: ToFrontEnd): void {
    switch (message.kind) {
      case "value":
        return this.#completeRequest(message.callId).resolve(message.value);
      case "error":
        return this.#completeRequest(message.callId).reject(fromErrorMessage(message.error));
      case "answer": {
        const { requestId, answerId, isFinal } = message;
        const outcome =
          message.outcome === null ? null : fromOutcomeMessage(message.outcome, (location) => this.#block(location));
        const consumed = () => {
          if (outcome !== null) this.#options.post({ kind: "taken", requestId, answerId });
        };
        return this.#requests.get(requestId)!.sink.respond(outcome, isFinal, consumed);
      }
      case "over": {
        const pending = this.#requests.get(message.requestId)!;
        this.#requests.delete(message.requestId);
        return pending.end();
      }
      default:
        unreachable(message);
    }
  }

  open(target: ModelTarget): ServedModel {
    const { leaseId, view, isHealthy } = this.#sendRawRequest((callId) => ({ kind: "open", callId, target })) as Lease;
    const usedBytes = () => this.#sendRawRequest((callId) => ({ kind: "arena", callId, leaseId })) as number | null;
    const arena: BlockSource = {
      get usedBytes() {
        return usedBytes() ?? 0;
      },
      allocate: (byteLength) =>
        this.#block(
          this.#sendRawRequest((callId) => ({ kind: "allocate", callId, leaseId, byteLength })) as ArenaRange,
        ),
    };
    let isOpen = true;
    return {
      view: frozen(view),
      isHealthy,
      get arena() {
        return usedBytes() === null ? null : arena;
      },
      infer: (request) => this.#infer(leaseId, request),
      stream: (request, sink) => this.#send(leaseId, request, sink, true),
      [Symbol.dispose]: () => {
        if (isOpen) this.#options.post({ kind: "close", leaseId });
        isOpen = false;
      },
    };
  }

  async #infer(leaseId: number, request: InferenceRequest): Promise<InferenceResponse> {
    const answered = Promise.withResolvers<InferenceResponse>();
    const sink: ResponseSink = {
      respond: (outcome, _isFinal, consumed) => {
        consumed();
        if (outcome instanceof InferenceError) answered.reject(outcome);
        else answered.resolve(outcome!);
      },
    };
    answered.promise.catch(() => {});
    await this.#send(leaseId, request, sink, false);
    return await answered.promise;
  }

  /** Sends a request. Resolves after the last response. */
  async #send(leaseId: number, request: InferenceRequest, sink: ResponseSink, isStream: boolean): Promise<void> {
    const { inputs, signal, responseSink: _responses, caller: _caller, ...head } = request;
    const requestId = ++this.#lastId;
    const over = Promise.withResolvers<void>();
    this.#requests.set(requestId, { sink, end: over.resolve });
    this.#options.post({ kind: "infer", requestId, leaseId, head, inputs: inputs.map(tensorMessage), isStream });
    // `post` has returned, so the engine now has its own references.
    releaseTensors(inputs);
    using _cancelling = this.#cancelling(requestId, signal);
    await over.promise;
  }

  #cancelling(id: number, signal: AbortSignal | null): Disposable {
    const cancel = () => this.#options.post({ kind: "cancel", id });
    if (signal?.aborted === true) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
    return { [Symbol.dispose]: () => signal?.removeEventListener("abort", cancel) };
  }

  #block(location: ArenaRange): Block {
    const giveBack = () => this.#options.post({ kind: "release", place: location });
    return new RemoteBlock(location, this.#options.bytesAt(location), giveBack);
  }

  #completeRequest(callId: number): Call {
    const call = this.#calls.get(callId);
    if (call === undefined) throw new Error(`bug: call ${callId} got a second response`);
    this.#calls.delete(callId);
    return call;
  }

  /** Makes a synchronous call. The result of the call must arrive before `post` returns. */
  #sendRawRequest(message: (callId: number) => ToEngine): unknown {
    const callId = ++this.#lastId;
    let result: { readonly value: unknown } | { readonly error: InferenceError } | null = null;
    this.#calls.set(callId, {
      resolve: (value) => (result = { value }),
      reject: (error) => (result = { error }),
    });
    this.#options.post(message(callId));
    const input = result as { readonly value: unknown } | { readonly error: InferenceError } | null;
    assert(input !== null, "the server responded synchronously");
    if ("error" in input) throw input.error;
    return input.value;
  }

  async #call<Value>(method: PlainMethod, values: readonly unknown[], signal: AbortSignal | null): Promise<Value> {
    const callId = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#calls.set(callId, { resolve, reject });
    this.#options.post({ kind: "call", callId, method, values });
    using _cancelling = this.#cancelling(callId, signal);
    return (await promise) as Value;
  }

  #callSync(method: PlainMethod, ...values: readonly unknown[]): unknown {
    return this.#sendRawRequest((callId) => ({ kind: "call", callId, method, values }));
  }

  serverMetadata(): ReturnType<Engine["serverMetadata"]> {
    return this.#callSync("serverMetadata") as ReturnType<Engine["serverMetadata"]>;
  }

  modelMetadata(target: ModelTarget): ReturnType<Engine["modelMetadata"]> {
    return this.#callSync("modelMetadata", target) as ReturnType<Engine["modelMetadata"]>;
  }

  statistics(modelName: string, modelVersion: string): ReturnType<Engine["statistics"]> {
    return this.#callSync("statistics", modelName, modelVersion) as ReturnType<Engine["statistics"]>;
  }

  memory(namespace?: string): ReturnType<Engine["memory"]> {
    return this.#callSync("memory", namespace) as ReturnType<Engine["memory"]>;
  }

  repositoryIndex(readyOnly: boolean): ReturnType<Engine["repositoryIndex"]> {
    return this.#call("repositoryIndex", [readyOnly], null);
  }

  loadModel(modelName: string, override: LoadOverride | null, signal: AbortSignal): Promise<void> {
    return this.#call("loadModel", [modelName, override], signal);
  }

  unloadModel(modelName: string, unloadDependents: boolean): Promise<void> {
    return this.#call("unloadModel", [modelName, unloadDependents], null);
  }

  openNamespace(source: NamespaceSource, signal: AbortSignal): Promise<void> {
    return this.#call("openNamespace", [source], signal);
  }

  closeNamespace(namespace: string): Promise<void> {
    return this.#call("closeNamespace", [namespace], null);
  }
}

/** Freezes a value and everything in it, so that code that changes the front end's copy of a model view throws an error. */
function frozen<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of value instanceof Map ? value.values() : Object.values(value)) frozen(member);
  return value;
}
