import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";

/** Time limit of one block, in milliseconds. Some blocks install packages. */
const blockMs = 600_000;

/** The servers that blocks start, with the text that each prints when it is ready. */
const readyTexts: ReadonlyMap<string, string> = new Map([
  ["serve", "Started Metrics Service at"],
  ["up", "Galatea is up at"],
]);
const startsServer = /\bgalatea (serve|up)\b(?! --help)([^]*)$/;

/** A server in the foreground is a process group, which `stop` ends and waits for. All else is of the shell's own group. */
const prologue = `
set -eo pipefail
stop() { for server in "$@"; do kill -TERM -- "-$server" 2>/dev/null || true; wait "$server" || true; done; }
trap 'trap "" TERM; stop $serve $up; kill -TERM 0; wait' EXIT
trap 'exit 143' TERM
`;

export interface ShellOptions {
  /** The folder of the reader's checkout, where the first block begins. */
  readonly directory: string;
  /** The folder of the texts of the blocks and of what they print. */
  readonly records: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * The terminals of a reader: a shell that runs one block after another, and one terminal for each server in the
 * foreground.
 */
export class DocumentShell {
  readonly #records: string;
  readonly #bash: ChildProcess;
  readonly #responses: Interface;
  #blockCount = 0;

  constructor({ directory, records, env }: ShellOptions) {
    this.#records = records;
    const stdio = ["pipe", "inherit", "inherit", "pipe"] as const;
    this.#bash = spawn("bash", [], { cwd: directory, env, stdio: [...stdio], detached: true });
    this.#responses = createInterface({ input: this.#bash.stdio[3] as NodeJS.ReadableStream });
    this.#bash.stdin?.write(prologue);
  }

  /** Saves a text in a file, whose path is relative to the shell's directory. */
  async save(path: string, text: string): Promise<void> {
    const saved = join(this.#records, `${++this.#blockCount}.saved`);
    await writeFile(saved, text);
    await this.#type(`mkdir -p "$(dirname '${path}')"; cp '${saved}' '${path}'`);
  }

  /**
   * Runs the text of a block, and waits until a server that it starts is ready. Resolves with a function that returns
   * its output so far. Rejects if a command fails or exceeds the time limit.
   */
  async run(language: string, text: string): Promise<() => Promise<string>> {
    const program = join(this.#records, `${++this.#blockCount}.${language}`);
    const output = `${program}.out`;
    await writeFile(program, text);
    await writeFile(output, "");
    const redirections = `>'${output}' 2>&1 3>&-`;
    const [, server, rest = ""] = (language === "sh" ? startsServer.exec(text) : null) ?? [];
    try {
      if (server === undefined || rest.includes("&"))
        await this.#type(`${commands[language]?.(program)} ${redirections}`);
      // A reader who starts a foreground server again has stopped it before.
      else
        await this.#type(
          `stop $${server}; setsid bash -eo pipefail '${program}' </dev/null ${redirections} & ${server}=$!`,
        );
      if (server !== undefined)
        await this.#type(`until grep -q '${readyTexts.get(server)}' '${output}'; do kill -0 $!; sleep 0.1; done`);
    } catch (error) {
      throw new Error(`${String(error)}\n${await readFile(output, "utf8")}`, { cause: error });
    }
    return () => readFile(output, "utf8");
  }

  /** Ends the shell and all that its blocks have started. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#bash.exitCode !== null || this.#bash.signalCode !== null) return;
    const exited = once(this.#bash, "exit");
    this.#bash.stdin?.end();
    await exited;
  }

  async #type(line: string): Promise<void> {
    const ended = new AbortController();
    const { signal } = ended;
    // A block that hangs is ended together with the shell.
    const hung = setTimeout(() => process.kill(-this.#bash.pid!, "SIGTERM"), blockMs);
    this.#bash.stdin?.write(`${line}\necho done >&3\n`);
    try {
      await Promise.race([
        once(this.#responses, "line", { signal }),
        once(this.#bash, "exit", { signal }).then(([code]) => Promise.reject(new Error(`exit status ${code}`))),
      ]);
    } finally {
      clearTimeout(hung);
      ended.abort();
    }
  }
}

/** The commands that run a block's file, by its language. The Python of a document's own environment comes before $CLIENTS_PYTHON. */
const commands: Readonly<Record<string, (path: string) => string>> = {
  sh: (path) => `source '${path}' </dev/null`,
  python: (path) => `"$(test -x .venv/bin/python && echo .venv/bin/python || echo "$CLIENTS_PYTHON")" - <'${path}'`,
  ts: (path) => `npx node --input-type=module-typescript - <'${path}'`,
  js: (path) => `npx node --input-type=module - <'${path}'`,
};
