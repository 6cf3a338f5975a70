import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "../../packages/base/src/core/eventually-fixture.ts";
import { cacheDirectory } from "../environments/index.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
const logCharactersMax = 2 ** 20;

export interface ScriptReply {
  readonly status: number;
  readonly contentType: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly bytes: Buffer;
}

async function writeFiles(directory: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
}

/**
 * A framework container in script mode (by default a multi-model one), started as the platform starts it, over a
 * directory of unpacked archives.
 */
export class ScriptServer implements AsyncDisposable {
  readonly directory: string;
  readonly #child: ChildProcess;
  #log = "";

  private constructor(directory: string, child: ChildProcess) {
    this.directory = directory;
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream
        ?.setEncoding("utf8")
        .on("data", (text: string) => (this.#log = (this.#log + text).slice(-logCharactersMax)));
  }

  /**
   * Starts a container. `files` are the model's files in a single-model container, which SAGEMAKER_MULTI_MODEL selects.
   */
  static async open(
    kind: string,
    env: Readonly<Record<string, string>> = {},
    files: Readonly<Record<string, string | Buffer>> = {},
  ): Promise<ScriptServer> {
    const directory = await mkdtemp(join(tmpdir(), "galatea-script-"));
    const args = [
      `--sagemaker-socket=${join(directory, "s")}`,
      `--ml-root=${join(directory, "ml")}`,
      `--container-kind=${kind}`,
      `--data=${join(cacheDirectory(process.env), "server-data")}`,
    ];
    await mkdir(join(directory, "ml", "models"), { recursive: true });
    await writeFiles(join(directory, "ml", "model"), files);
    const child = spawn(process.execPath, [main, "serve", ...args], {
      env: { ...process.env, SAGEMAKER_MULTI_MODEL: "true", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const server = new ScriptServer(directory, child);
    await server.#serves();
    return server;
  }

  get log(): string {
    return this.#log;
  }

  /** Resolves when the log contains the words, because log lines and responses arrive independently. */
  async logged(words: string): Promise<void> {
    await eventually(() => this.#log.includes(words)).catch((error: unknown) => {
      throw new Error(`the log has no "${words}": ${this.#log.slice(-5000)}`, { cause: error });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Writes an archive's files and loads the archive. Resolves with the response. */
  async load(id: string, files: Readonly<Record<string, string | Buffer>>): Promise<ScriptReply> {
    await writeFiles(join(this.directory, "ml", "models", id, "model"), files);
    return await this.call("POST", "/models", JSON.stringify({ model_name: id, url: `/opt/ml/models/${id}/model` }));
  }

  invoke(id: string, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Promise<ScriptReply> {
    return this.call("POST", `/models/${id}/invoke`, body, headers);
  }

  call(
    method: string,
    path: string,
    body: string | Buffer = "",
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ScriptReply> {
    return new Promise((resolve, reject) => {
      const socketPath = join(this.directory, "s");
      const outgoing = request(
        { socketPath, method, path, headers: { ...headers, "Content-Length": Buffer.byteLength(body) }, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () => {
            const bytes = Buffer.concat(chunks);
            resolve({
              status: response.statusCode ?? 0,
              contentType: response.headers["content-type"] ?? "",
              headers: response.headers,
              body: bytes.toString(),
              bytes,
            });
          });
        },
      );
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill("SIGTERM");
      await ended;
    }
    await rm(this.directory, { recursive: true, force: true });
  }

  async #serves(): Promise<void> {
    const words = "Started Sagemaker HTTPService";
    if (this.#log.includes(words)) return;
    await new Promise<void>((resolve, reject) => {
      const look = () => this.#log.includes(words) && resolve();
      this.#child.stdout?.on("data", look);
      this.#child.stderr?.on("data", look);
      this.#child.once("close", () => reject(new Error(`the server ended before it served: ${this.#log}`)));
    });
  }
}

/** Returns the files below a directory by their relative paths. */
export async function filesBelow(directory: string): Promise<Record<string, Buffer>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const files = paths.map(async (path) => [relative(directory, path), await readFile(path)] as const);
  return Object.fromEntries(await Promise.all(files));
}
