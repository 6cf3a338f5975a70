import { InferenceError, unreachable } from "@galatea/base";
import type { Engine, ServedModel } from "../../engine/index.ts";
import { newInferenceRequest, type ResponseSink, type Outcome } from "../../inference/index.ts";
import { LeasedBlocks } from "./leased-blocks.ts";
import type { Lease, PlainMethod, ServerState, ToEngine, ToFrontEnd } from "./messages.ts";
import { errorMessage, outcomeMessage, toArenaRange, fromTensorMessage } from "./tensor-messages.ts";

type Infer = Extract<ToEngine, { kind: "infer" }>;

/** A request whose responses were not all produced or not all acknowledged. */
interface OpenRequest {
  readonly controller: AbortController;
  /** Callbacks that acknowledge a response, by the response's id. */
  readonly untaken: Map<number, () => void>;
  isOver: boolean;
}

/** Methods whose last argument is an abort signal. */
const cancellable: ReadonlySet<PlainMethod> = new Set(["loadModel", "openNamespace"]);

/** Serves one front-end thread from an engine through messages. */
export class EngineMessageServer {
  readonly lent = new LeasedBlocks();
  readonly #engine: Engine;
  readonly #post: (message: ToFrontEnd) => void;
  readonly #leases = new Map<number, ServedModel>();
  readonly #requests = new Map<number, OpenRequest>();
  readonly #calls = new Map<number, AbortController>();
  #lastId = 0;

  constructor(engine: Engine, post: (message: ToFrontEnd) => void) {
    this.#engine = engine;
    this.#post = post;
  }

  /** Number of resources that the front end has not released or completed. */
  get openCount(): number {
    return this.lent.count + this.#leases.size + this.#requests.size + this.#calls.size;
  }

  handle(message: ToEngine): void {
    switch (message.kind) {
      case "call":
        return this.#call(message.callId, message.method, message.values);
      case "state":
        return this.#sendResponse(message.callId, (): ServerState => {
          const { live, ready } = this.#engine;
          return { live, ready };
        });
      case "open":
        return this.#sendResponse(message.callId, () => this.#open(this.#engine.open(message.target)));
      case "close":
        this.#lease(message.leaseId)[Symbol.dispose]();
        return void this.#leases.delete(message.leaseId);
      case "arena":
        return this.#sendResponse(message.callId, () => this.#lease(message.leaseId).arena?.usedBytes ?? null);
      case "allocate":
        return this.#sendResponse(message.callId, () => {
          const block = this.#lease(message.leaseId).arena?.allocate(message.byteLength);
          if (block === undefined) throw new InferenceError("UNAVAILABLE", "the model was unloaded");
          this.lent.lend(block);
          return toArenaRange(block);
        });
      case "release":
        return this.lent.release(message.place);
      case "infer":
        return void this.#infer(message);
      case "cancel":
        return (this.#requests.get(message.id)?.controller ?? this.#calls.get(message.id))?.abort();
      case "taken":
        return this.#taken(message.requestId, message.answerId);
      default:
        unreachable(message);
    }
  }

  #open(model: ServedModel): Lease {
    const leaseId = ++this.#lastId;
    this.#leases.set(leaseId, model);
    return { leaseId, view: model.view, isHealthy: model.isHealthy };
  }

  #lease(leaseId: number): ServedModel {
    const model = this.#leases.get(leaseId);
    if (model === undefined) throw new Error(`bug: lease ${leaseId} is not held`);
    return model;
  }

  #sendResponse(callId: number, call: () => unknown): void {
    let value: unknown;
    try {
      value = call();
    } catch (error) {
      return this.#post({ kind: "error", callId, error: errorMessage(InferenceError.from(error)) });
    }
    this.#post({ kind: "value", callId, value });
  }

  #call(callId: number, method: PlainMethod, values: readonly unknown[]): void {
    const controller = new AbortController();
    const verb = this.#engine[method] as (...values: unknown[]) => unknown;
    const all = cancellable.has(method) ? [...values, controller.signal] : [...values];
    let argument: unknown;
    try {
      argument = verb.apply(this.#engine, all);
    } catch (error) {
      return this.#sendResponse(callId, () => {
        throw error;
      });
    }
    if (!(argument instanceof Promise)) return this.#sendResponse(callId, () => argument);
    this.#calls.set(callId, controller);
    argument
      .finally(() => this.#calls.delete(callId))
      .then(
        (value: unknown) => this.#post({ kind: "value", callId, value }),
        (error: unknown) => this.#post({ kind: "error", callId, error: errorMessage(InferenceError.from(error)) }),
      );
  }

  async #infer({ requestId, leaseId, head, inputs, isStream }: Infer): Promise<void> {
    const controller = new AbortController();
    const open: OpenRequest = { controller, untaken: new Map(), isOver: false };
    this.#requests.set(requestId, open);
    const request = newInferenceRequest({
      ...head,
      inputs: inputs.map((input) => fromTensorMessage(input, (location) => this.lent.take(location))),
      signal: controller.signal,
    });
    const model = this.#lease(leaseId);
    const sink: ResponseSink = {
      respond: (outcome, isFinal, consumed) => this.#respond(requestId, open, { outcome, isFinal, taken: consumed }),
    };
    if (isStream) await model.stream(request, sink);
    else {
      const outcome = await model.infer(request).catch((error: unknown) => InferenceError.from(error));
      sink.respond(outcome, true, () => {});
    }
    open.isOver = true;
    this.#post({ kind: "over", requestId });
    this.#forget(requestId, open);
  }

  #respond(
    requestId: number,
    open: OpenRequest,
    response: { readonly outcome: Outcome | null; readonly isFinal: boolean; readonly taken: () => void },
  ): void {
    const { outcome, isFinal, taken } = response;
    const answerId = ++this.#lastId;
    // A final flag without a response is not acknowledged.
    if (outcome !== null) open.untaken.set(answerId, taken);
    if (outcome !== null && !(outcome instanceof InferenceError))
      for (const { block } of outcome.outputs) if (block !== null) this.lent.lend(block);
    const plainOutcome = outcome === null ? null : outcomeMessage(outcome);
    this.#post({ kind: "answer", requestId, answerId, outcome: plainOutcome, isFinal });
  }

  #taken(requestId: number, answerId: number): void {
    const open = this.#requests.get(requestId);
    const taken = open?.untaken.get(answerId);
    if (open === undefined || taken === undefined) throw new Error(`bug: answer ${answerId} is taken a second time`);
    open.untaken.delete(answerId);
    taken();
    this.#forget(requestId, open);
  }

  #forget(requestId: number, open: OpenRequest): void {
    if (open.isOver && open.untaken.size === 0) this.#requests.delete(requestId);
  }
}
