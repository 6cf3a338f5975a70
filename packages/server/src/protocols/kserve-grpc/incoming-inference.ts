import type { ByteLease, Clock } from "@galatea/base";
import type { Engine, ServedModel } from "../../engine/index.ts";
import type { BlockSource } from "../../tensor/index.ts";
import type { MessageSink } from "../grpc-listener/index.ts";
import { InferMessageReader, type InferMessage } from "./infer-message.ts";
import { isLongMessage } from "./infer-request.ts";
import { checkedVersion } from "./model-version.ts";

export interface IncomingInferenceOptions {
  readonly byteLength: number;
  readonly engine: Engine;
  readonly clock: Clock;
  /** The lease of this request alone. */
  readonly memory: ByteLease;
  /** Called when the whole message was received. */
  readonly done: () => void;
}

/**
 * One request of a call from its first byte on, and its model. The model is looked up when the first tensor arrives, so that tensors are
 * read into its arena, and leased until this is disposed.
 */
export class IncomingInference implements MessageSink, Disposable {
  readonly receivedNs: number;
  readonly #options: IncomingInferenceOptions;
  readonly #reader: InferMessageReader;
  #message: InferMessage | null = null;
  #model: ServedModel | null = null;
  /** Name and version by which the model was found: fields of a message may come in any order, and repeatedly. */
  #foundBy = "";

  constructor(options: IncomingInferenceOptions) {
    this.#options = options;
    this.receivedNs = options.clock.monotonicNs();
    const { byteLength, memory } = options;
    this.#reader = new InferMessageReader({
      byteLength,
      memory,
      arenaOf: (message) => this.#arenaOf(message),
      done: (message) => {
        this.#message = message;
        options.done();
      },
    });
  }

  write(chunk: Buffer): void {
    this.#reader.write(chunk);
  }

  end(): void {
    this.#reader.end();
  }

  /** Model name and id of the whole message, for errors about it. */
  get of(): { readonly modelName: string; readonly id: string } {
    return this.#message ?? { modelName: "", id: "" };
  }

  /** True if the message is decoded in chunks, between which the event loop runs. */
  get isLong(): boolean {
    return isLongMessage(this.#message!);
  }

  /** Returns the message's model. Throws errors of its name or version. */
  get model(): ServedModel {
    return this.#open(this.#message!);
  }

  /** Returns the message; the caller then owns its blocks. */
  take(): InferMessage {
    const message = this.#message!;
    this.#message = { ...message, raw: [] };
    return message;
  }

  #arenaOf(message: InferMessage): BlockSource | null {
    try {
      return this.#open(message).arena;
    } catch {
      // The error is reported when the whole message is received; until then its tensors are in plain memory.
      return null;
    }
  }

  #open(message: InferMessage): ServedModel {
    const modelVersion = checkedVersion(message.modelVersion);
    const wanted = `${modelVersion}/${message.modelName}`;
    if (this.#model !== null && this.#foundBy === wanted) return this.#model;
    this.#model?.[Symbol.dispose]();
    this.#model = null;
    this.#model = this.#options.engine.open({ namespace: "", modelName: message.modelName, modelVersion });
    this.#foundBy = wanted;
    return this.#model;
  }

  [Symbol.dispose](): void {
    this.#reader.release();
    for (const { block } of this.#message?.raw ?? []) block?.release();
    this.#message = this.#message === null ? null : { ...this.#message, raw: [] };
    this.#model?.[Symbol.dispose]();
    this.#model = null;
    this.#options.memory[Symbol.dispose]();
  }
}
