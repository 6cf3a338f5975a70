import { assert, type InferenceCode, inferenceCodes, InferenceError, SerialQueue } from "@galatea/base";
import { sendDescriptors, SystemCallError } from "@galatea/base/system";
import { JsonChannel } from "./json-channel.ts";
import type { CallMessage, ReplyMessage, RunnerCall, RunnerCalls } from "./runner-control.ts";

interface PendingCall {
  readonly onStart: () => void;
  readonly resolve: (reply: never) => void;
  readonly reject: (error: Error) => void;
}

/** The server's side of a runner's control socket. Owns both file descriptors. */
export class RunnerCaller {
  readonly #channel: JsonChannel;
  readonly #descriptorFd: number;
  readonly #pending = new Map<number, PendingCall>();
  /** Sends file descriptors one at a time, because the runner reads the next descriptor from its socket when it handles the call. */
  readonly #descriptorQueue = new SerialQueue();
  readonly #closed = Promise.withResolvers<void>();
  #lastId = 0;
  #failure: Error | null = null;

  constructor(sockets: { controlFd: number; descriptorFd: number }, onClosed: () => void) {
    this.#descriptorFd = sockets.descriptorFd;
    this.#channel = new JsonChannel(sockets.controlFd, {
      onMessage: (message) => this.#onReply(message),
      onClosed: () => {
        this.#closed.resolve();
        onClosed();
      },
    });
    this.#channel.unref();
  }

  get descriptorFd(): number {
    return this.#descriptorFd;
  }

  /** Resolves when no more messages can arrive from the runner. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Sends a call and resolves with the reply. Calls `started` when the runner reports that it has started the call. */
  call<Call extends RunnerCall>(
    call: Call,
    request: RunnerCalls[Call]["request"],
    started: () => void = () => {},
  ): Promise<RunnerCalls[Call]["reply"]> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) throw this.#failure;
      const id = ++this.#lastId;
      this.#pending.set(id, { onStart: started, resolve, reject });
      // The socket keeps the process alive only while a call is pending.
      this.#channel.ref();
      this.#channel.send({ id, call, request } satisfies CallMessage);
    });
  }

  /** Sends a call with a file descriptor. The caller still owns the descriptor. */
  callWith<Call extends "thread" | "arena">(
    call: Call,
    request: RunnerCalls[Call]["request"],
    fd: number,
  ): Promise<RunnerCalls[Call]["reply"]> {
    return this.#descriptorQueue.run(async () => {
      if (this.#failure !== null) throw this.#failure;
      this.#sendDescriptor(fd);
      return await this.call(call, request);
    });
  }

  /** Rejects every pending and later call with the error. */
  fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }

  close(): void {
    this.#channel.close();
  }

  /**
   * Sends a file descriptor. If the runner does not accept it, the runner has ended or is killed here, and the call fails with that error.
   */
  #sendDescriptor(fd: number): void {
    try {
      assert(sendDescriptors(this.#descriptorFd, new Uint8Array(1), [fd]), "one descriptor is sent at a time");
    } catch (error) {
      if (!(error instanceof SystemCallError)) throw error;
      this.#channel.close();
    }
  }

  #onReply(message: unknown): void {
    const reply = message as ReplyMessage;
    const pending = this.#pending.get(reply.id);
    if (pending === undefined) return;
    if ("begun" in reply) return pending.onStart();
    this.#pending.delete(reply.id);
    if (this.#pending.size === 0) this.#channel.unref();
    if ("reply" in reply) pending.resolve(reply.reply as never);
    else pending.reject(new InferenceError(codeOf(reply.error.code), reply.error.message));
  }
}

function codeOf(text: string): InferenceCode {
  return inferenceCodes.find((code) => code === text) ?? "INTERNAL";
}
