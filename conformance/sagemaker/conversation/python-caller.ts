import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { cacheDirectory, ensureEnvironment, type EnvironmentName } from "../../environments/index.ts";
import { CallError, type AwsCaller, type Members } from "./client.ts";

interface PythonCallerOptions {
  readonly name: string;
  /** Of `lines.py`'s language. */
  readonly program: string;
  readonly environment: EnvironmentName;
  readonly variables: Readonly<Record<string, string>>;
}

/** A client of Python, in a process of its own that is asked line by line. */
export class PythonCaller implements AwsCaller {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(name: string, child: ChildProcess, lines: AsyncIterator<string>) {
    this.name = name;
    this.#child = child;
    this.#lines = lines;
  }

  static async open({ name, program, environment, variables }: PythonCallerOptions): Promise<PythonCaller> {
    const { python } = await ensureEnvironment(cacheDirectory(process.env), environment);
    const child = spawn(python, ["-B", program], {
      env: { ...process.env, ...variables },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    return new PythonCaller(name, child, lines);
  }

  call(service: string, operation: string, input: Members): Promise<Members> {
    return this.#ask({ kind: "call", service, name: operation, input: encoded(input) });
  }

  async wait(service: string, waiter: string, input: Members): Promise<void> {
    await this.#ask({ kind: "wait", service, name: waiter, input });
  }

  async #ask(asked: Members): Promise<Members> {
    this.#child.stdin?.write(`${JSON.stringify(asked)}\n`);
    const line = await this.#lines.next();
    if (line.done === true) throw new Error(`${this.name} ended at ${JSON.stringify(asked)}`);
    const told = JSON.parse(line.value) as { answer: Members } | { code: string; message: string; kind: string };
    if ("code" in told) throw new CallError(told.code, told.message, told.kind);
    return decoded(told.answer) as Members;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.stdin?.end();
    await exited;
  }
}

function encoded(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return { $bytes: value.toString("base64") };
  if (Array.isArray(value)) return value.map(encoded);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, encoded(each)]));
}

function decoded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decoded);
  if (typeof value !== "object" || value === null) return value;
  if ("$bytes" in value) return Buffer.from(String(value.$bytes), "base64");
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, decoded(each)]));
}
