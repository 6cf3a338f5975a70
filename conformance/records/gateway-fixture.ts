/** `galatea gateway` as a process, and SDK clients that call it. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { S3Client } from "@aws-sdk/client-s3";
import { SageMakerClient } from "@aws-sdk/client-sagemaker";
import { SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { credentials } from "../faults/platform.ts";
import { compileCache, type Workspace } from "../faults/serving.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));

export interface GatewayProcessOptions {
  readonly workspace: Workspace;
  readonly records: string;
  readonly flags?: readonly string[];
}

export class RunningGateway implements AsyncDisposable {
  readonly url: string;
  readonly workspace: Workspace;
  readonly s3: S3Client;
  readonly sagemaker: SageMakerClient;
  readonly runtime: SageMakerRuntimeClient;
  readonly #child: ChildProcess;
  readonly #log: () => string;

  private constructor(url: string, workspace: Workspace, { child, log }: { child: ChildProcess; log: () => string }) {
    this.url = url;
    this.workspace = workspace;
    this.#child = child;
    this.#log = log;
    // A retry would hide the failure that a test is about.
    const client = { endpoint: url, region: "us-east-1", credentials, maxAttempts: 1 };
    this.s3 = new S3Client({ ...client, forcePathStyle: true });
    this.sagemaker = new SageMakerClient(client);
    this.runtime = new SageMakerRuntimeClient(client);
  }

  /** Starts a gateway. Resolves when its port is open. */
  static async open({ workspace, records, flags = [] }: GatewayProcessOptions): Promise<RunningGateway> {
    const child = spawn(process.execPath, [main, "gateway", "--port=0", `--records=${records}`, ...flags], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"],
        HOME: process.env["HOME"],
        TMPDIR: workspace.temporary,
        NODE_COMPILE_CACHE: compileCache,
        GALATEA_ACCESS_KEY_ID: credentials.accessKeyId,
        GALATEA_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      },
    });
    // The test process may be ended by its runner; the gateway must not outlive it.
    const kill = () => child.kill("SIGKILL");
    process.once("exit", kill);
    child.once("close", () => process.removeListener("exit", kill));
    let log = "";
    const url = await new Promise<string>((resolve, reject) => {
      const note = (chunk: Buffer) => {
        log += chunk.toString();
        const found = /Galatea gateway is ready at (http:\S+)/.exec(log)?.[1];
        if (found !== undefined) resolve(found);
      };
      child.stdout.on("data", note);
      child.stderr.on("data", note);
      child.once("close", () => reject(new Error(`the gateway ended: ${log}`)));
    });
    return new RunningGateway(url, workspace, { child, log: () => log });
  }

  log(): string {
    return this.#log();
  }

  async page(path: string): Promise<{ readonly status: number; readonly text: string }> {
    const response = await fetch(`${this.url}${path}`, { signal: AbortSignal.timeout(15_000) });
    return { status: response.status, text: await response.text() };
  }

  /** Resolves when the process has ended. */
  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = once(this.#child, "close");
    this.#child.kill(signal);
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of [this.s3, this.sagemaker, this.runtime]) client.destroy();
    await this.end("SIGTERM");
  }
}
