import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { watch } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { freePorts } from "../environments/index.ts";
import { shareMadePython } from "../shared-python.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
/** Time limit of a test's waits, in milliseconds: longer than a busy machine needs. */
const goneMsMax = 30_000;

/**
 * The commit at which a platform is killed: the n-th commit from now on that changes a document of a kind, or any
 * document.
 */
export interface KillPoint {
  readonly kind: string | null;
  readonly commitCount: number;
}

/** `galatea up` with its own directory, which also contains its temporary files. */
export class KilledPlatform implements AsyncDisposable {
  readonly directory: string;
  /** Each start uses this port, so that it takes over the instances of the previous run. */
  readonly #port: number;
  #child: ChildProcess | null = null;
  #url = "";
  #message = "";

  private constructor(directory: string, port: number) {
    this.directory = directory;
    this.#port = port;
  }

  static async open(): Promise<KilledPlatform> {
    const platform = new KilledPlatform(await mkdtemp(join(tmpdir(), "gal-k-")), (await freePorts(1))[0] ?? 0);
    await shareMadePython(platform.data);
    await mkdir(platform.temporary);
    await platform.start();
    return platform;
  }

  get url(): string {
    return this.#url;
  }

  get data(): string {
    return join(this.directory, "data");
  }

  /** The directory of temporary files. Its path is short, because it contains sockets. */
  get temporary(): string {
    return join(this.directory, "t");
  }

  /** The log output of all runs of the platform. */
  get told(): string {
    return this.#message;
  }

  async start(): Promise<void> {
    const args = [main, "up", "--open", `--port=${this.#port}`, `--data=${this.data}`];
    const env = { ...process.env, TMPDIR: this.temporary };
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], env });
    this.#child = child;
    child.stderr.on("data", (chunk: Buffer) => (this.#message += String(chunk)));
    let text = "";
    for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
      text += String(chunk);
      const url = /at (http:\S+)/.exec(text)?.[1];
      if (url === undefined) continue;
      this.#url = url;
      return;
    }
    throw new Error(`the platform ended before it was up: ${text}\n${this.#message.slice(-2000)}`);
  }

  /** Kills the platform with kill -9 at the point. Resolves when its own process has ended; its instances continue. */
  async killedAt(point: KillPoint): Promise<void> {
    const child = this.#child;
    if (child === null) throw new Error("bug: nothing runs");
    const closed = once(child, "exit");
    using _watch = whenWritten(join(this.data, "records"), point, () => child.kill("SIGKILL"));
    await closed;
    this.#child = null;
  }

  /** Stops the platform with SIGTERM. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    const closed = once(child, "exit");
    child.kill("SIGTERM");
    await closed;
    await this.#untilGone();
  }

  /** Returns the processes that were started with this directory, work below it, or are the platform itself. */
  async processes(): Promise<readonly string[]> {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const found = await Promise.all(
      pids.map(async (pid) => {
        const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
        const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => "");
        return command.includes(this.directory) || cwd.startsWith(this.directory) ? [`${pid} ${command}`] : [];
      }),
    );
    return found.flat();
  }

  async #untilGone(): Promise<void> {
    for (const untilMs = performance.now() + goneMsMax; ;) {
      const left = await this.processes();
      if (left.length === 0) return;
      if (performance.now() > untilMs) throw new Error(`processes are left: ${left.join("\n")}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/**
 * Selects the versions after a given one with the kinds of their documents; of several versions of a document only the
 * last.
 */
const writesSql = `SELECT version, group_concat(kind, ' ') AS kinds FROM (
    SELECT version, kind FROM document WHERE version > ?1 UNION ALL SELECT version, kind FROM document_gone WHERE version > ?1
  ) GROUP BY version ORDER BY version`;

/** Calls `reached` once the number of commits that the point requires have been written from now on. */
function whenWritten(records: string, point: KillPoint, reached: () => void): Disposable {
  const database = new DatabaseSync(join(records, "galatea.db"), { readOnly: true });
  const writes = database.prepare(writesSql);
  let [last, count, isOver] = [Number(writes.all(0).at(-1)?.["version"] ?? 0), 0, false];
  // This file is written after each commit.
  const watcher = watch(join(records, "galatea.db.commits"), () => {
    for (const { version, kinds } of isOver ? [] : writes.all(last)) {
      last = Number(version);
      if (point.kind === null || String(kinds).split(" ").includes(point.kind)) count += 1;
    }
    if (count < point.commitCount || isOver) return;
    isOver = true;
    reached();
  });
  return {
    [Symbol.dispose]() {
      watcher.close();
      database.close();
    },
  };
}
