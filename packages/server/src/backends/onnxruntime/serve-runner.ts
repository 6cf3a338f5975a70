import { closeSync } from "node:fs";
import { assert, InferenceError } from "@galatea/base";
import { mapMemory, type MappedMemory, receiveDescriptor } from "@galatea/base/system";
import {
  openOnnxRuntime,
  openRunThread,
  type OnnxRuntime,
  type OnnxSession,
  type RunThread,
} from "../../native/index.ts";
import { JsonChannel } from "./json-channel.ts";
import type { CallMessage, LoadedSession, ReplyMessage, RunnerCall, RunnerCalls } from "./runner-control.ts";
import { RunnerMemory } from "./runner-memory.ts";

export interface RunnerSockets {
  readonly controlFd: number;
  /** Receives the file descriptors of thread sockets and of arenas. */
  readonly descriptorFd: number;
}

type Handlers = {
  readonly [Call in RunnerCall]: (
    request: RunnerCalls[Call]["request"],
    started: () => void,
  ) => Promise<RunnerCalls[Call]["reply"]>;
};

/**
 * The main loop of a runner process: handles the server's calls over `controlFd` until that descriptor is closed. Runs do not pass through
 * this loop: the server sends them directly to a run thread. The server's messages are trusted.
 */
export async function serveRunner(sockets: RunnerSockets): Promise<void> {
  const runner = new ServedRunner(sockets.descriptorFd);
  await new Promise<void>((resolve) => {
    const channel = new JsonChannel(sockets.controlFd, {
      onMessage: (message) => {
        const { id, call, request } = message as CallMessage;
        const handle = runner.handlers[call] as (request: unknown, started: () => void) => Promise<unknown>;
        handle(request, () => channel.send({ id, begun: true } satisfies ReplyMessage)).then(
          (reply) => channel.send({ id, reply } satisfies ReplyMessage),
          (thrown: unknown) => {
            const { code, message: text } = InferenceError.from(thrown);
            channel.send({ id, error: { code, message: text } } satisfies ReplyMessage);
          },
        );
      },
      onClosed: resolve,
    });
  });
}

class ServedRunner {
  readonly handlers: Handlers;
  readonly #descriptorFd: number;
  readonly #threads = new Map<number, RunThread>();
  readonly #arenas = new Map<number, MappedMemory>();
  readonly #sessions = new Map<string, OnnxSession>();
  readonly #memory = new RunnerMemory();
  #runtime: OnnxRuntime | null = null;
  #libraryPath = "";
  /** Memory of the process in bytes after unused memory was last released, plus the memory of sessions opened since then. */
  #settledBytes = 0;
  /** Memory of the process before its first session; null until then. */
  #bareBytes: number | null = null;

  constructor(descriptorFd: number) {
    this.#descriptorFd = descriptorFd;
    this.handlers = {
      start: async (options) => {
        this.#libraryPath = options.libraryPath;
        this.#runtime = openOnnxRuntime(options);
        this.#settledBytes = await this.#memory.bytes();
        return {};
      },
      thread: async ({ thread }) => {
        const fd = receiveDescriptor(this.#descriptorFd);
        this.#threads.set(thread, await openRunThread({ libraryPath: this.#libraryPath, fd }));
        return {};
      },
      terminate: async ({ thread, does }) => {
        this.#threads.get(thread)?.setTerminating(does);
        return {};
      },
      arena: async ({ arena, byteLength }) => {
        const fd = receiveDescriptor(this.#descriptorFd);
        try {
          const mapped = mapMemory(fd, byteLength);
          this.#arenas.set(arena, mapped);
          return { address: Number(mapped.address) };
        } finally {
          closeSync(fd);
        }
      },
      forget: async ({ arena }) => {
        this.#arenas.get(arena)?.unmap();
        this.#arenas.delete(arena);
        return {};
      },
      load: (request, started) => this.#load(request, started),
      close: async ({ session }) => {
        const before = await this.#memory.bytes();
        await this.#sessions.get(session)?.[Symbol.asyncDispose]();
        this.#sessions.delete(session);
        const after = await this.#memory.bytes();
        this.#settledBytes += after - before;
        return { heldBytes: this.#heldBytes(after) };
      },
      settle: async ({ keptBytesMax }) => {
        let bytes = await this.#memory.bytes();
        if (bytes - this.#settledBytes > keptBytesMax) {
          await this.#runtime!.releaseUnusedMemory();
          bytes = await this.#memory.bytes();
          this.#settledBytes = bytes;
        }
        return { heldBytes: this.#heldBytes(bytes) };
      },
    };
  }

  async #load({ session, options }: RunnerCalls["load"]["request"], started: () => void): Promise<LoadedSession> {
    assert(this.#runtime !== null && !this.#sessions.has(session), "a session is loaded once, after the start");
    const before = await this.#memory.bytes();
    this.#bareBytes ??= before;
    started();
    const opened = await this.#runtime.openSession({ ...options, config: new Map(options.config) });
    this.#sessions.set(session, opened);
    const after = await this.#memory.bytes();
    this.#settledBytes += after - before;
    const { handle, inputs, outputs, placement } = opened;
    return {
      handle: Number(handle),
      inputs,
      outputs,
      inputNames: opened.inputNames.map(Number),
      outputNames: opened.outputNames.map(Number),
      home: placement?.home ?? 0,
      processors: placement?.caller ?? this.#runtime.processors,
      openedBytes: Math.max(0, after - before),
      heldBytes: this.#heldBytes(after),
    };
  }

  #heldBytes(bytes: number): number {
    return Math.max(0, bytes - (this.#bareBytes ?? bytes));
  }
}
