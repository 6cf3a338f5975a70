import type { ByteLease, Clock } from "@galatea/base";
import type { Engine, ServedModel } from "../../engine/index.ts";
import type { BlockSource } from "../../tensor/index.ts";
import type { MessageSink } from "../grpc-listener/index.ts";
import { InferMessageReader, type InferMessage } from "./infer-message.ts";
import { isLongMessage } from "./infer-request.ts";
import { parseVersion } from "./model-version.ts";

export interface IncomingInferenceOptions {
  readonly byteLength: number;
  readonly engine: Engine;
  readonly clock: Clock;
  /** The memory lease of this request, which no other request shares. */
  readonly memory: ByteLease;
  /** Called when the complete message was received. */
  readonly done: () => void;
}

/**
 * One request message, from its first byte, and its model. The model is looked up when the first tensor arrives, so that tensors are read
 * into the model's arena. The model is leased until this object is disposed.
 */
export class IncomingInference implements MessageSink, Disposable {
  readonly receivedNs: number;
  readonly #options: IncomingInferenceOptions;
  readonly #reader: InferMessageReader;
  #message: InferMessage | null = null;
  #model: ServedModel | null = null;
  /**
   * Name and version with which the model was found. They are compared again later, because the fields of a message may come in any order
   * and more than once.
   */
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

  /** Model name and id of the received message, for error messages. */
  get of(): { readonly modelName: string; readonly id: string } {
    return this.#message ?? { modelName: "", id: "" };
  }

  /** True if the message is long enough to be decoded in chunks. */
  get isLong(): boolean {
    return isLongMessage(this.#message!);
  }

  /** Returns the leased model of the message. Throws errors of its name or version. */
  get model(): ServedModel {
    return this.#open(this.#message!);
  }

  /** Returns the message and transfers the ownership of its blocks to the caller. */
  take(): InferMessage {
    const message = this.#message!;
    this.#message = { ...message, raw: [] };
    return message;
  }

  #arenaOf(message: InferMessage): BlockSource | null {
    try {
      return this.#open(message).arena;
    } catch {
      // A lookup error is reported after the whole message was received. Until then, its tensors are read to plain memory.
      return null;
    }
  }

  #open(message: InferMessage): ServedModel {
    const modelVersion = parseVersion(message.modelVersion);
    const desired = `${modelVersion}/${message.modelName}`;
    if (this.#model !== null && this.#foundBy === desired) return this.#model;
    this.#model?.[Symbol.dispose]();
    this.#model = null;
    this.#model = this.#options.engine.open({ namespace: "", modelName: message.modelName, modelVersion });
    this.#foundBy = desired;
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
