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
  /** Of this request alone; ended with it. */
  readonly memory: ByteLease;
  /** All of it has come. */
  readonly done: () => void;
}

/**
 * One request of a call from its first byte on, and the model that it is for: found when the first tensor comes, so that tensors go where
 * the model wants them, and held until this is disposed of.
 */
export class IncomingInference implements MessageSink, Disposable {
  readonly receivedNs: number;
  readonly #options: IncomingInferenceOptions;
  readonly #reader: InferMessageReader;
  #message: InferMessage | null = null;
  #model: ServedModel | null = null;
  /** What the model was found by: fields of a message may come in any order, and again. */
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

  /** Of the whole message, for what is told about it. */
  get of(): { readonly modelName: string; readonly id: string } {
    return this.#message ?? { modelName: "", id: "" };
  }

  /** Whether others are to have their turn while the whole message is decoded. */
  get isLong(): boolean {
    return isLongMessage(this.#message!);
  }

  /** The message's model. Throws what is wrong with its name, or with its version. */
  get model(): ServedModel {
    return this.#open(this.#message!);
  }

  /** The message, whose blocks are the caller's now. */
  take(): InferMessage {
    const message = this.#message!;
    this.#message = { ...message, raw: [] };
    return message;
  }

  #arenaOf(message: InferMessage): BlockSource | null {
    try {
      return this.#open(message).arena;
    } catch {
      // Told when the whole message is there; until then its tensors lie in plain memory.
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
