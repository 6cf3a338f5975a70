import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdir, rm } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  DescribeEndpointCommand,
  SageMakerClient,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { processesMarked } from "./processes.ts";
import { assertNoProcesses, assertNoSharedMemory, compileCache, createWorkspace, type Workspace } from "./serving.ts";
import { until } from "./until.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
export const bucket = "faults";
export const credentials = { accessKeyId: "faults", secretAccessKey: "faults-secret" };
export const prefix = "models/";
export const image = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3";

interface Running {
  readonly child: ChildProcess;
  readonly url: string;
  readonly log: () => string;
}

type Environment = Readonly<Record<string, string>>;

interface PlatformOptions {
  readonly verified?: boolean;
  /** The port of each start; any free port if it is not set. */
  readonly port?: number;
  readonly flags?: readonly string[];
  /** Flags in addition to those of all platforms of these tests. */
  readonly env?: Environment;
}

/** `galatea up` over its own data directory; it can be killed and started again. */
export class Platform implements AsyncDisposable {
  readonly workspace: Workspace;
  readonly #flags: readonly string[];
  readonly #env: Environment;
  #running: Running;
  s3!: S3Client;
  sagemaker!: SageMakerClient;
  runtime!: SageMakerRuntimeClient;

  private constructor(
    workspace: Workspace,
    { flags, env }: Required<Pick<PlatformOptions, "flags" | "env">>,
    running: Running,
  ) {
    this.workspace = workspace;
    this.#flags = flags;
    this.#env = env;
    this.#running = running;
    this.#connect();
  }

  /** `prepare` runs before the start. Signatures are only verified on request, because most tests send requests that no SDK signs. */
  static async open(
    prepare: (workspace: Workspace) => Promise<void> = async () => {},
    { verified = false, port = 0, flags = [], env = {} }: PlatformOptions = {},
  ): Promise<Platform> {
    const workspace = await createWorkspace();
    await prepare(workspace);
    const all = [`--port=${port}`, ...flags, ...(verified ? [] : ["--open"])];
    // Without the stack, a platform whose bucket cannot be created would keep the test process running.
    await using opening = new AsyncDisposableStack();
    const platform = opening.use(new Platform(workspace, { flags: all, env }, await up(workspace, all, env)));
    await platform.s3.send(new CreateBucketCommand({ Bucket: bucket }));
    opening.move();
    return platform;
  }

  get pid(): number {
    return this.#running.child.pid ?? 0;
  }

  get url(): string {
    return this.#running.url;
  }

  log(): string {
    return this.#running.log();
  }

  /** Sends SIGKILL, and resolves when the process has ended. */
  async kill(): Promise<void> {
    const { child } = this.#running;
    const exited = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await exited;
  }

  /** Sends SIGTERM if the process is running. */
  async stop(): Promise<void> {
    const { child } = this.#running;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGTERM");
    await exited;
    assert.equal(child.exitCode, 0, this.log());
  }

  async startAgain(): Promise<void> {
    this.#running = await up(this.workspace, this.#flags, this.#env);
    this.#connect();
  }

  /** Runs `galatea restart`, and resolves when the new platform process is up. */
  async restart(): Promise<void> {
    const { HOME } = process.env;
    const child = spawn(process.execPath, [main, "restart", "--data", this.workspace.data], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH: process.env["PATH"], HOME, TMPDIR: this.workspace.temporary, NODE_COMPILE_CACHE: compileCache },
    });
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
    assert.equal(code, 0, said);
  }

  /** Starts another platform over the same data. Rejects with its output if it ends before it is up. */
  async startSecond(): Promise<void> {
    const { child } = await up(this.workspace, this.#flags, this.#env);
    child.kill("SIGKILL");
  }

  /** Returns the server processes of endpoint instances, including those that outlived a previous platform process. */
  servers(): number[] {
    return processesMarked(this.workspace.mark)
      .filter(({ command }) => command.includes("--sagemaker-socket="))
      .map(({ pid }) => pid);
  }

  #connect(): void {
    for (const client of [this.s3, this.sagemaker, this.runtime] as ({ destroy(): void } | undefined)[])
      client?.destroy();
    const options = {
      endpoint: this.url,
      region: "us-east-1",
      credentials,
      // A retry would hide the failure that a test checks.
      maxAttempts: 1,
    };
    this.s3 = new S3Client({ ...options, forcePathStyle: true });
    this.sagemaker = new SageMakerClient(options);
    this.runtime = new SageMakerRuntimeClient(options);
  }

  /** Sends SIGTERM if the process is running, then checks that only its data remains. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      assertNoSharedMemory(this.workspace);
      await this.stop();
      await assertNoProcesses(this.workspace);
      assert.deepEqual(
        await readdir(this.workspace.temporary, { recursive: true }),
        [],
        "files left in the temporary folder",
      );
    } finally {
      for (const { pid } of processesMarked(this.workspace.mark)) process.kill(pid, "SIGKILL");
      for (const client of [this.s3, this.sagemaker, this.runtime]) client.destroy();
      await rm(this.workspace.directory, { recursive: true, force: true });
    }
  }
}

const logBytesMax = 1 << 20;

async function up(workspace: Workspace, more: readonly string[], env: Environment): Promise<Running> {
  const args = [main, "up", "--data", workspace.data, "--worker-write", workspace.meeting, ...more];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      TMPDIR: workspace.temporary,
      NODE_COMPILE_CACHE: compileCache,
      GALATEA_ACCESS_KEY_ID: credentials.accessKeyId,
      GALATEA_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      ...env,
    },
  });
  // The test runner may end the test process; the platform must not outlive it.
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  let printed = "";
  const url = await new Promise<string>((resolve, reject) => {
    const note = (chunk: Buffer) => {
      printed = (printed + chunk.toString()).slice(-logBytesMax);
      const found = /Galatea is up at (http:\S+)/.exec(printed)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on("data", note);
    child.stderr.on("data", note);
    child.once("error", reject);
    child.once("close", () => {
      process.removeListener("exit", kill);
      reject(new Error(`galatea up ended before it was up:\n${printed.slice(-6000)}`));
    });
  });
  return { child, url, log: () => printed };
}

export interface EndpointPlan {
  readonly name: string;
  readonly modelDataUrl?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly instanceCount?: number;
  /** The URL at which an asynchronous endpoint writes its outputs. */
  readonly asyncOutput?: string;
}

/** Calls CreateModel, CreateEndpointConfig and CreateEndpoint: a multi-model endpoint over `prefix`, unless the plan names an archive. */
export async function createEndpoint(
  platform: Pick<Platform, "sagemaker" | "workspace">,
  plan: EndpointPlan,
): Promise<void> {
  const { sagemaker } = platform;
  const { name, environment = {}, instanceCount = 1, asyncOutput } = plan;
  const multiModel = plan.modelDataUrl === undefined;
  await sagemaker.send(
    new CreateModelCommand({
      ModelName: name,
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
      PrimaryContainer: {
        Image: image,
        ModelDataUrl: plan.modelDataUrl ?? `s3://${bucket}/${prefix}`,
        Mode: multiModel ? "MultiModel" : "SingleModel",
        Environment: { FAULTS_MEETING: platform.workspace.meeting, ...environment },
      },
    }),
  );
  await sagemaker.send(
    new CreateEndpointConfigCommand({
      EndpointConfigName: name,
      ProductionVariants: [
        { VariantName: "all", ModelName: name, InstanceType: "ml.m5.large", InitialInstanceCount: instanceCount },
      ],
      ...(asyncOutput === undefined ? {} : { AsyncInferenceConfig: { OutputConfig: { S3OutputPath: asyncOutput } } }),
    }),
  );
  await sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
}

/** Waits until the endpoint has this status, and returns its FailureReason. */
export async function endpointIs(platform: Pick<Platform, "sagemaker">, name: string, status: string): Promise<string> {
  return await until(`endpoint ${name} is ${status}`, async () => {
    const described = await platform.sagemaker.send(new DescribeEndpointCommand({ EndpointName: name }));
    if (described.EndpointStatus === status) return described.FailureReason ?? "-";
    if (described.EndpointStatus === "Failed") throw new Error(`${name} failed: ${described.FailureReason}`);
    return null;
  });
}

/** Returns the text of the response. */
export async function invoke(
  platform: Pick<Platform, "runtime">,
  name: string,
  target: string | null,
  body: string,
  abortSignal: AbortSignal = new AbortController().signal,
): Promise<string> {
  const reply = await platform.runtime.send(
    new InvokeEndpointCommand({
      EndpointName: name,
      ...(target === null ? {} : { TargetModel: target }),
      ContentType: "application/json",
      Body: body,
    }),
    { abortSignal },
  );
  return reply.Body.transformToString();
}

/** Returns the error of an invocation: name, status and message as the SDK has them. */
export async function errorOfInvocation(
  asked: Promise<unknown>,
): Promise<{ name: string; status: number; message: string }> {
  try {
    await asked;
  } catch (error) {
    const { name, message, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
    return { name, message, status: $metadata?.httpStatusCode ?? 0 };
  }
  return assert.fail("the call succeeded");
}
