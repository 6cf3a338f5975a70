import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3Client } from "@aws-sdk/client-s3";
import { cacheDirectory, ensureTool, freePorts } from "../../environments/index.ts";
import { until } from "../../faults/until.ts";
import type { S3Service } from "../objects-service-checks.ts";

type Credentials = S3Service["credentials"];

interface Program {
  args(address: string, data: string): readonly string[];
  env(credentials: Credentials): Readonly<Record<string, string>>;
}

/** S3 services in Go, which share no code with ours. */
const programs = {
  versitygw: {
    args: (address, data) => [`--port=${address}`, "--quiet", "--keep-alive", "posix", data],
    env: ({ accessKeyId, secretAccessKey }) => ({
      ROOT_ACCESS_KEY_ID: accessKeyId,
      ROOT_SECRET_ACCESS_KEY: secretAccessKey,
    }),
  },
  minio: {
    args: (address, data) => ["server", "--quiet", `--address=${address}`, data],
    env: ({ accessKeyId, secretAccessKey }) => ({
      MINIO_ROOT_USER: accessKeyId,
      MINIO_ROOT_PASSWORD: secretAccessKey,
      MINIO_BROWSER: "off",
    }),
  },
} as const satisfies Readonly<Record<string, Program>>;

/** A third-party program that is an S3 service over a temporary directory. */
export class S3Program implements S3Service {
  readonly url: string;
  readonly credentials: Credentials;
  readonly s3: S3Client;
  readonly #folder: string;
  readonly #start: () => ChildProcess;
  #child: ChildProcess;

  private constructor(folder: string, url: string, start: () => ChildProcess, credentials: Credentials) {
    this.url = url;
    this.credentials = credentials;
    this.#folder = folder;
    this.#start = start;
    this.#child = start();
    this.s3 = new S3Client({ endpoint: url, region: "us-east-1", credentials, forcePathStyle: true });
  }

  static async open(name: keyof typeof programs, credentials: Credentials): Promise<S3Program> {
    const path = await ensureTool(cacheDirectory(process.env), name);
    const folder = await mkdtemp(join(tmpdir(), "galatea-s3-program-"));
    const data = join(folder, "data");
    await mkdir(data);
    const [port = 0] = await freePorts(1);
    const address = `127.0.0.1:${port}`;
    const { args, env } = programs[name];
    const options = { HOME: folder, ...env(credentials) };
    const start = () => spawn(path, args(address, data), { stdio: ["ignore", "ignore", "inherit"], env: options });
    const server = new S3Program(folder, `http://${address}`, start, credentials);
    await server.#listening();
    return server;
  }

  async kill(): Promise<void> {
    const closed = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await closed;
  }

  async startAgain(): Promise<void> {
    this.#child = this.#start();
    await this.#listening();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.s3.destroy();
    await this.kill();
    await rm(this.#folder, { recursive: true });
  }

  /** Any response but a 5xx: MinIO responds with 503 while it starts. */
  async #listening(): Promise<void> {
    await until("the S3 service responds", async () => {
      const response = await fetch(this.url).catch(() => null);
      if (this.#child.exitCode !== null) throw new Error(`the S3 service ended with ${this.#child.exitCode}`);
      return response !== null && response.status < 500;
    });
  }
}
