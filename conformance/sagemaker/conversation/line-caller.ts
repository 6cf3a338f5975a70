import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { CallError, type AwsCaller, type Members } from "./client.ts";
import { decoded, encoded, type LineRequest } from "./line-values.ts";

type Child = ChildProcessByStdio<Writable, Readable, null>;

interface LineCallerOptions {
  readonly name: string;
  /** The command of a program with the protocol of `lines.py`. */
  readonly command: readonly [program: string, ...words: string[]];
  readonly variables: Readonly<Record<string, string>>;
}

/** A client in its own process that is called line by line. */
export class LineCaller implements AwsCaller {
  readonly name: string;
  readonly #child: Child;
  readonly #lines: AsyncIterator<string>;
  readonly #closed: Promise<unknown>;

  private constructor(name: string, child: Child) {
    this.name = name;
    this.#child = child;
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    this.#closed = new Promise((resolve) => child.once("close", resolve));
    // The end of the program is reported by the missing response.
    child.stdin.on("error", () => {});
  }

  static async open({ name, command: [program, ...words], variables }: LineCallerOptions): Promise<LineCaller> {
    const child = spawn(program, words, { env: { ...process.env, ...variables }, stdio: ["pipe", "pipe", "inherit"] });
    const caller = new LineCaller(name, child);
    await once(child, "spawn");
    return caller;
  }

  call(service: string, operation: string, input: Members): Promise<Members> {
    return this.#request({ kind: "call", service, name: operation, input });
  }

  async wait(service: string, waiter: string, input: Members): Promise<void> {
    await this.#request({ kind: "wait", service, name: waiter, input });
  }

  async #request(requested: LineRequest): Promise<Members> {
    this.#child.stdin.write(`${JSON.stringify({ ...requested, input: encoded(requested.input) })}\n`);
    const line = await this.#lines.next();
    if (line.done === true) throw new Error(`${this.name} ended at ${JSON.stringify(requested)}`);
    const reported = JSON.parse(line.value) as { answer: Members } | { code: string; message: string; kind: string };
    if ("code" in reported) throw new CallError(reported.code, reported.message, reported.kind);
    return decoded(reported.answer) as Members;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await this.#closed;
  }
}
