import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, fstatSync, openSync, readSync, watch } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { shareMadePython } from "../shared-python.ts";

const main = fileURLToPath(new URL("../../server/src/main.ts", import.meta.url));
const journalName = "galatea.db.journal";
/** Of a test: beyond what a busy machine needs. */
const goneMsMax = 30_000;

/** When a platform is killed: with so many commits to its records, counted from a start on, that change a document of a kind, or any. */
export interface KillPoint {
  readonly kind: string | null;
  readonly commitCount: number;
}

/** `galatea up` over a directory of its own, which also holds everything temporary of it. */
export class KilledPlatform implements AsyncDisposable {
  readonly directory: string;
  #child: ChildProcess | null = null;
  #url = "";
  #told = "";

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async open(): Promise<KilledPlatform> {
    const platform = new KilledPlatform(await mkdtemp(join(tmpdir(), "gal-k-")));
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

  /** Short, because sockets lie there. */
  get temporary(): string {
    return join(this.directory, "t");
  }

  /** What the platform wrote to its log, over all lives. */
  get told(): string {
    return this.#told;
  }

  async start(): Promise<void> {
    const args = [main, "up", "--open", "--port=0", `--data=${this.data}`];
    const env = { ...process.env, TMPDIR: this.temporary };
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], env });
    this.#child = child;
    child.stderr.on("data", (chunk: Buffer) => (this.#told += String(chunk)));
    let text = "";
    for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
      text += String(chunk);
      const url = /at (http:\S+)/.exec(text)?.[1];
      if (url === undefined) continue;
      this.#url = url;
      return;
    }
    throw new Error(`the platform ended before it was up: ${text}\n${this.#told.slice(-2000)}`);
  }

  /** kill -9 at that point of what is being done; resolves when nothing of it runs any more. */
  async killedAt(point: KillPoint): Promise<void> {
    const child = this.#child;
    if (child === null) throw new Error("bug: nothing runs");
    const closed = once(child, "exit");
    using _watch = whenWritten(join(this.data, "records"), point, () => child.kill("SIGKILL"));
    await closed;
    this.#child = null;
    await this.#untilGone();
  }

  /** An orderly stop. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    const closed = once(child, "exit");
    child.kill("SIGTERM");
    await closed;
    await this.#untilGone();
  }

  /** Processes that were started with this directory, or work below it, and the platform itself. */
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

/** Calls back once, with the commit that is written to the journal from now on and is the point. */
function whenWritten(records: string, point: KillPoint, reached: () => void): Disposable {
  const path = join(records, journalName);
  let [place, count, isOver] = [lengthOf(path), 0, false];
  const look = () => {
    const { text, end } = readFrom(path, place);
    place = end;
    const kind = point.kind === null ? "" : `"${point.kind}"`;
    count += text.split("\n").filter((line) => line !== "" && line.includes(kind)).length;
    if (count < point.commitCount || isOver) return;
    isOver = true;
    reached();
  };
  const watcher = watch(records, (_event, name) => {
    if (name === journalName) look();
  });
  return { [Symbol.dispose]: () => watcher.close() };
}

function lengthOf(path: string): number {
  const file = openSync(path, "r");
  try {
    return fstatSync(file).size;
  } finally {
    closeSync(file);
  }
}

/** What is behind that place, or from the beginning of a journal that was begun anew. */
function readFrom(path: string, place: number): { readonly text: string; readonly end: number } {
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const from = size < place ? 0 : place;
    const bytes = Buffer.alloc(size - from);
    readSync(file, bytes, 0, bytes.length, from);
    return { text: bytes.toString(), end: size };
  } finally {
    closeSync(file);
  }
}
