import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  SageMakerClient,
} from "@aws-sdk/client-sagemaker";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const credentials = { accessKeyId: "OWNER", secretAccessKey: "owner-secret" };
const bucket = "tenants";
/** An image that needs no packages to start. */
export const image = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3";

/** Options of an AWS client of a platform. */
export const clientOf = (endpoint: string) => ({ endpoint, region: "us-east-1", credentials, maxAttempts: 1 });

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `galatea up` as a process, over a directory of its own. */
export class RunningPlatform implements AsyncDisposable {
  readonly url: string;
  readonly sagemaker: SageMakerClient;
  readonly #root: string;
  readonly #child: ChildProcess;
  readonly #printed: { stdout: string; stderr: string };

  private constructor(root: string, child: ChildProcess, printed: { stdout: string; stderr: string }) {
    this.#root = root;
    this.#child = child;
    this.#printed = printed;
    this.url = /Galatea is up at (http:\S+)/.exec(printed.stdout)?.[1] ?? "";
    this.sagemaker = new SageMakerClient(clientOf(this.url));
  }

  static async open(flags: readonly string[] = []): Promise<RunningPlatform> {
    const root = await mkdtemp(join(tmpdir(), "gal-running-"));
    const child = run(root, ["up", "--port=0", ...flags]);
    const printed = collected(child);
    await eventually(() => {
      assert.equal(child.exitCode, null, printed.stderr);
      return printed.stdout.includes("\n");
    });
    const platform = new RunningPlatform(root, child, printed);
    const s3 = new S3Client({ ...clientOf(platform.url), forcePathStyle: true });
    await s3.send(new CreateBucketCommand({ Bucket: bucket }));
    s3.destroy();
    return platform;
  }

  get stdout(): string {
    return this.#printed.stdout;
  }

  get stderr(): string {
    return this.#printed.stderr;
  }

  /** Runs another command of the same user. */
  async galatea(...words: readonly string[]): Promise<Ended> {
    return await ended(run(this.#root, words));
  }

  /** Starts another command of the same user, which the test has to stop. */
  start(...words: readonly string[]): { readonly child: ChildProcess; readonly printed: { readonly stdout: string } } {
    const child = run(this.#root, words);
    return { child, printed: collected(child) };
  }

  /** Creates a multi-model endpoint, or one whose archive is missing, which fails. */
  async createEndpoint(name: string, { isBroken = false } = {}): Promise<void> {
    const data = isBroken
      ? { ModelDataUrl: `s3://${bucket}/absent.tar.gz` }
      : { ModelDataUrl: `s3://${bucket}/models/`, Mode: "MultiModel" as const };
    const container = { Image: image, ...data };
    const role = "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole";
    const variant = {
      VariantName: "v",
      ModelName: name,
      InstanceType: "ml.t2.medium",
      InitialInstanceCount: 1,
    } as const;
    const named = { EndpointConfigName: name };
    await this.sagemaker.send(
      new CreateModelCommand({ ModelName: name, PrimaryContainer: container, ExecutionRoleArn: role }),
    );
    await this.sagemaker.send(new CreateEndpointConfigCommand({ ...named, ProductionVariants: [variant] }));
    await this.sagemaker.send(new CreateEndpointCommand({ EndpointName: name, ...named }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.sagemaker.destroy();
    const closed = new Promise((resolve) => this.#child.once("close", resolve));
    if (this.#child.exitCode === null) {
      this.#child.kill("SIGTERM");
      await closed;
    }
    await rm(this.#root, { recursive: true, force: true });
  }
}

/** `galatea serve` without models, on a free port; disposal stops it. */
export async function serveNothing(): Promise<AsyncDisposable & { readonly url: string }> {
  const root = await mkdtemp(join(tmpdir(), "gal-serve-"));
  await mkdir(join(root, "models"));
  const flags = [
    `--model-repository=${root}/models`,
    "--http-address=127.0.0.1",
    "--http-port=0",
    "--allow-grpc=false",
  ];
  const child = run(root, ["serve", ...flags, "--allow-metrics=false"]);
  const printed = collected(child);
  const found = () => /Started HTTPService at ([\d.:]+)/.exec(printed.stdout)?.[1];
  await eventually(() => {
    assert.equal(child.exitCode, null, printed.stderr);
    return found() !== undefined;
  });
  return {
    url: `http://${found()}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGTERM");
      await closed;
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Runs a command in a home directory without a platform. */
export async function galateaAlone(...words: readonly string[]): Promise<Ended> {
  const root = await mkdtemp(join(tmpdir(), "gal-alone-"));
  try {
    return await ended(run(root, words));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

function run(root: string, words: readonly string[]): ChildProcess {
  const { GALATEA_DATA: _, ...env } = process.env;
  const keys = {
    GALATEA_ACCESS_KEY_ID: credentials.accessKeyId,
    GALATEA_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
  const own = { XDG_DATA_HOME: root, TMPDIR: root, ...keys };
  return spawn(process.execPath, [program, ...words], { stdio: ["ignore", "pipe", "pipe"], env: { ...env, ...own } });
}

function collected(child: ChildProcess): { stdout: string; stderr: string } {
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.setEncoding("utf8").on("data", (text: string) => (printed[name] += text));
  return printed;
}

async function ended(child: ChildProcess): Promise<Ended> {
  const printed = collected(child);
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, ...printed };
}
