/** `galatea up --standby` as a process: several of them share records in PostgreSQL and objects in an S3 service. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { S3Client } from "@aws-sdk/client-s3";
import { SageMakerClient } from "@aws-sdk/client-sagemaker";
import { SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { freePorts } from "../environments/index.ts";
import { credentials } from "../faults/platform.ts";
import { processesMarked } from "../faults/processes.ts";
import { compileCache, type Workspace } from "../faults/serving.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));

export interface ReplicaOptions {
  readonly workspace: Workspace;
  /** The name of the data directory below the fixture's directory. */
  readonly data: string;
  readonly records: string;
  readonly objects: string;
  readonly flags?: readonly string[];
}

/** One process at a time at one port. A replica that has ended can be started again, as a service manager does. */
export class Replica implements AsyncDisposable {
  readonly url: string;
  readonly s3: S3Client;
  readonly sagemaker: SageMakerClient;
  readonly runtime: SageMakerRuntimeClient;
  readonly options: ReplicaOptions;
  #child: ChildProcess | null = null;
  #log = "";

  private constructor(options: ReplicaOptions, port: number) {
    this.options = options;
    this.url = `http://127.0.0.1:${port}`;
    // A retry would hide the failure that a test checks.
    const client = { endpoint: this.url, region: "us-east-1", credentials, maxAttempts: 1 };
    this.s3 = new S3Client({ ...client, forcePathStyle: true });
    this.sagemaker = new SageMakerClient(client);
    this.runtime = new SageMakerRuntimeClient(client);
  }

  static async of(options: ReplicaOptions): Promise<Replica> {
    const [port = 0] = await freePorts(1);
    return new Replica(options, port);
  }

  /** Starts the process without waiting for it. */
  start(): void {
    const { workspace, data, records, objects, flags = [] } = this.options;
    const port = new URL(this.url).port;
    const args = [
      "up",
      `--port=${port}`,
      `--data=${join(workspace.directory, data)}`,
      "--worker-write",
      workspace.meeting,
    ];
    const more = [`--records=${records}`, `--objects=${objects}`, "--standby", "--instance-grace-secs=20", ...flags];
    const child = spawn(process.execPath, [main, ...args, ...more], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"],
        HOME: process.env["HOME"],
        TMPDIR: workspace.temporary,
        NODE_COMPILE_CACHE: compileCache,
        GALATEA_ACCESS_KEY_ID: credentials.accessKeyId,
        GALATEA_SECRET_ACCESS_KEY: credentials.secretAccessKey,
        AWS_ACCESS_KEY_ID: credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      },
    });
    // The test runner may end the test process; the platform must not outlive it.
    const kill = () => child.kill("SIGKILL");
    process.once("exit", kill);
    child.once("close", () => process.removeListener("exit", kill));
    this.#log = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (this.#log += String(text)));
    this.#child = child;
  }

  get workspace(): Workspace {
    return this.options.workspace;
  }

  log(): string {
    return this.#log;
  }

  /** The state of the replica: up, waiting, or neither. */
  async role(): Promise<"leader" | "standby" | "none"> {
    if (this.#child === null || this.#child.exitCode !== null || this.#child.signalCode !== null) return "none";
    const health = await this.page("/health").catch(() => null);
    if (health === null) return "none";
    const { status } = JSON.parse(health.text) as { readonly status: string };
    return status === "ok" ? "leader" : "standby";
  }

  async page(path: string): Promise<{ readonly status: number; readonly text: string }> {
    const response = await fetch(`${this.url}${path}`, { signal: AbortSignal.timeout(2000) });
    return { status: response.status, text: await response.text() };
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  /** Resolves with the exit code when the process has ended, null after a signal. */
  async ended(): Promise<number | null> {
    const child = this.#child;
    if (child === null) throw new Error("it was not started");
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const [code] = (await once(child, "close")) as [number | null];
    return code;
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended();
  }

  /** The server processes of the instances that were started over this replica's data directory. */
  servers(): readonly number[] {
    const data = `--data=${join(this.options.workspace.directory, this.options.data)}`;
    return processesMarked(this.options.workspace.mark)
      .filter(({ command }) => command.includes("--sagemaker-socket=") && command.includes(data))
      .map(({ pid }) => pid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of [this.s3, this.sagemaker, this.runtime]) client.destroy();
    if (this.#child === null) return;
    this.signal("SIGCONT");
    this.signal("SIGTERM");
    await this.ended();
  }
}
