import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment, type EnvironmentName } from "../environments/index.ts";
import { shareMadePython } from "../shared-python.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
const fastMain = fileURLToPath(new URL("fast/up.ts", import.meta.url));
/** Time limit of a script, in milliseconds: much longer than a busy machine needs. */
const scriptMsMax = 900_000;

interface RunOptions {
  readonly proxy?: boolean;
  readonly environment?: EnvironmentName;
}

/** The start options of a platform, and further variables for it and its scripts. */
interface Start {
  readonly program: string;
  readonly flags: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly scriptEnvironment: Readonly<Record<string, string>>;
}

interface Running {
  readonly child: ChildProcess;
  readonly url: string;
}

/** `galatea up` on a free port with its own data directory, for Python scripts that use the output of `galatea env`. */
export class ScriptedPlatform implements AsyncDisposable {
  readonly directory: string;
  readonly #start: Start;
  #running: Running;

  private constructor(directory: string, start: Start, running: Running) {
    this.directory = directory;
    this.#start = start;
    this.#running = running;
  }

  /** Starts a platform with further flags of `galatea up`. */
  static open(flags: readonly string[] = []): Promise<ScriptedPlatform> {
    return ScriptedPlatform.#open({ program: main, flags, environment: {}, scriptEnvironment: {} });
  }

  /**
   * Starts a platform with a fast clock for itself and its scripts, on which a minute takes `minuteMs`. Signatures are
   * not verified, because a request that waits for some seconds would be too old on that clock.
   */
  static openFast(minuteMs: number): Promise<ScriptedPlatform> {
    const environment = { FAST_CLOCK: `${Date.now()},${60_000 / minuteMs}` };
    const scriptEnvironment = { ...environment, PYTHONPATH: dirname(fastMain) };
    return ScriptedPlatform.#open({ program: fastMain, flags: ["--open"], environment, scriptEnvironment });
  }

  static async #open(start: Start): Promise<ScriptedPlatform> {
    const directory = await mkdtemp(join(tmpdir(), "galatea-scripted-"));
    await shareMadePython(join(directory, "data"));
    return new ScriptedPlatform(directory, start, await up(directory, start));
  }

  /**
   * Kills the platform with kill -9 and starts it over the same data: at any free port, where instances are started
   * again, or at the same port, where they continue.
   */
  async killAndStartAgain(at: "any port" | "same port" = "any port"): Promise<void> {
    const { child, url } = this.#running;
    await ended(child, "SIGKILL");
    this.#running = await up(this.directory, this.#start, at === "same port" ? new URL(url).port : "0");
  }

  /**
   * Runs a script with boto3 or in another environment, and resolves with its output; rejects with it for any exit code
   * but 0. `proxy`: HTTPS goes through the platform.
   */
  async run(program: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
    const { python } = await ensureEnvironment(cacheDirectory(process.env), options.environment ?? "clients");
    const path = `${dirname(python)}:${process.env["PATH"] ?? ""}`;
    const env = {
      ...process.env,
      ...this.#start.scriptEnvironment,
      ...(await this.variables(options.proxy)),
      PATH: path,
    };
    return await new Promise((resolve, reject) => {
      execFile(python, [program, ...args], { env, timeout: scriptMsMax }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
      });
    });
  }

  /**
   * Runs another command of `galatea` on this platform, and resolves with its output; rejects with it for any exit code
   * but 0.
   */
  async command(...words: readonly string[]): Promise<string> {
    const { hostname, port } = new URL(this.#running.url);
    const flags = ["--host", hostname, "--port", port, "--data", join(this.directory, "data")];
    const { stdout } = await promisify(execFile)(process.execPath, [main, ...words, ...flags]);
    return stdout;
  }

  /** Resolves with the variables of `galatea env` by name. */
  async variables(proxy = false): Promise<Record<string, string>> {
    const stdout = await this.command("env", ...(proxy ? ["--proxy"] : []));
    const pairs = [...stdout.matchAll(/^export (\w+)=(.*)$/gm)];
    return Object.fromEntries(pairs.map(([, name = "", value = ""]) => [name, value.replace(/^'(.*)'$/, "$1")]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await ended(this.#running.child, "SIGTERM");
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Starts the platform. Resolves with the URL that it prints. */
async function up(directory: string, { program, flags, environment }: Start, port = "0"): Promise<Running> {
  const child = spawn(process.execPath, [program, "up", "--port", port, "--data", join(directory, "data"), ...flags], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.once("exit", (code, signal) => {
    // Tests stop a platform through this object; any other end is the reason for later failures.
    if (!child.killed) process.stderr.write(`the platform ended unexpectedly: exit code ${code}, signal ${signal}\n`);
  });
  let text = "";
  // The pipe stays open, because the platform would die when it writes to a closed pipe.
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    const url = /at (http:\S+) \(/.exec(text)?.[1];
    if (url === undefined) continue;
    child.stdout.resume();
    return { child, url };
  }
  throw new Error(`the platform ended before it was up: ${text}`);
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await exited;
}
