import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chown, cp, mkdir, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CreateBucketCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  SageMakerClient,
  waitUntilEndpointInService,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { freePorts, inherited, launch, type RunningServer } from "../environments/index.ts";
import { runToExit } from "../environments/launch.ts";
import { sendRequest } from "../faults/http-client.ts";
import { harmless, writeModel } from "../faults/onnx-models.ts";

export const root = fileURLToPath(new URL("../../", import.meta.url));
const commandTimeoutMs = 600_000;
const readyTimeoutMs = 240_000;
const nobodyId = 65_534;
const addSub = join(root, "examples/add_sub/models/add_sub");
const twoRows = { datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] };
const addSubBody = JSON.stringify({ inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, ...twoRows })) });

/** A user of the machine with its own home directory, without access to this checkout. */
export class User {
  readonly home: string;
  readonly #isNobody: boolean;

  private constructor(home: string, isNobody: boolean) {
    this.home = home;
    this.#isNobody = isNobody;
  }

  /** The user that runs the tests. */
  static async current(directory: string): Promise<User> {
    const user = new User(join(directory, "own"), false);
    await user.makeFolder();
    return user;
  }

  /** The user `nobody` where root runs the tests, else the user that runs them. */
  static async unprivileged(directory: string): Promise<User> {
    const user = new User(join(directory, "nobody"), process.getuid?.() === 0);
    await user.makeFolder();
    return user;
  }

  /** Creates an empty directory below the user's home, or the home. */
  async makeFolder(name = ""): Promise<string> {
    const folder = join(this.home, name);
    await mkdir(folder, { recursive: true });
    if (this.#isNobody) await chown(folder, nobodyId, nobodyId);
    return folder;
  }

  /** Returns the words of a command line that runs a command as this user. */
  words(command: readonly string[]): readonly string[] {
    const ids = [`--reuid=${nobodyId}`, `--regid=${nobodyId}`, "--clear-groups"];
    return this.#isNobody ? ["setpriv", ...ids, ...command] : command;
  }

  /** The machine's settings of npm and pip, without those that `npm run` adds for its scripts and without the programs of this checkout. */
  get environment(): Record<string, string> {
    const handedOn = /^npm_(?!config_(registry|cache|userconfig|globalconfig)$)/;
    const kept = Object.entries(inherited()).filter(([name]) => !handedOn.test(name));
    const { PATH = "", ...env } = Object.fromEntries(kept);
    const programs = PATH.split(delimiter).filter((each) => !each.endsWith("node_modules/.bin"));
    if (!this.#isNobody) return { ...env, PATH: programs.join(delimiter), XDG_DATA_HOME: this.home };
    delete env["npm_config_cache"];
    delete env["npm_config_userconfig"];
    return { ...env, PATH: "/usr/local/bin:/usr/bin:/bin", HOME: this.home };
  }

  /** Runs a command to its end in `cwd`, and returns what it printed. */
  async run(cwd: string, command: readonly string[]): Promise<string> {
    const [program = "", ...args] = this.words(["env", "-C", cwd, ...command]);
    const result = await runToExit(program, args, this.environment, commandTimeoutMs);
    assert.equal(result.exitCode, 0, `${command.join(" ")}: ${result.stdout}${result.stderr}`);
    return result.stdout;
  }
}

/** An installed `galatea`, as a user runs it. */
export class InstalledGalatea {
  readonly #command: string;
  readonly #user: User;

  constructor(command: string, user: User) {
    this.#command = command;
    this.#user = user;
  }

  /** Serves a Python and an ONNX model, and checks a response of each. */
  async checkServe(): Promise<void> {
    const repository = await this.#user.makeFolder("models");
    await cp(addSub, join(repository, "add_sub"), { recursive: true });
    await mkdir(join(repository, "negate/1"), { recursive: true });
    const inputs = [{ name: "x", type: "FLOAT", dims: [2] }] as const;
    await writeModel(join(repository, "negate/1/model.onnx"), { ...harmless, inputs });
    await writeFile(join(repository, "negate/config.pbtxt"), `backend: "onnxruntime"`);
    const [port = 0] = await freePorts(1);
    const flags = [`--model-repository=${repository}`, `--http-port=${port}`, "--http-address=127.0.0.1"];
    const server = await this.#start(
      ["serve", ...flags, "--allow-grpc=false", "--allow-metrics=false"],
      port,
      `Started HTTPService at 127.0.0.1:${port}`,
    );
    try {
      const outputOf = async (model: string, body: string) => {
        const response = await sendRequest(port, { path: `/v2/models/${model}/infer`, body });
        assert.equal(response.status, 200, response.body.toString());
        return (JSON.parse(response.body.toString()) as { outputs: { data: number[] }[] }).outputs[0]?.data;
      };
      const x = { name: "x", datatype: "FP32", shape: [2], data: [1, 2] };
      assert.deepEqual(await outputOf("negate", JSON.stringify({ inputs: [x] })), [-1, -2]);
      assert.deepEqual(await outputOf("add_sub", addSubBody), [2, 4, 6, 8]);
    } finally {
      assert.equal(await server.stop(), 0, server.log());
    }
  }

  /** Starts a platform, creates an endpoint of the Python model, and checks a response of it. */
  async checkUp(): Promise<void> {
    const [port = 0] = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    const server = await this.#start(["up", "--open", `--port=${port}`], port, url);
    try {
      assert.deepEqual(await invokedOutput(url), [2, 4, 6, 8]);
    } finally {
      assert.equal(await server.stop(), 0, server.log());
    }
  }

  async #start(words: readonly string[], httpPort: number, readyText: string): Promise<RunningServer> {
    const data = `--data=${await this.#user.makeFolder("data")}`;
    const [command = "", ...args] = this.#user.words([this.#command, ...words, data]);
    return await launch({
      kind: "galatea",
      command,
      arguments: args,
      env: this.#user.environment,
      ports: { httpPort, grpcPort: 0, metricsPort: 0, sagemakerPort: 0 },
      readyTexts: [readyText],
      readyTimeoutMs,
      signal: undefined,
      cleanUp: async () => {},
    });
  }
}

/** Returns the first output of the Python model behind a new endpoint. */
async function invokedOutput(endpoint: string): Promise<readonly number[] | undefined> {
  const options = {
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "any", secretAccessKey: "any" },
  };
  const s3 = new S3Client({ ...options, forcePathStyle: true });
  const sagemaker = new SageMakerClient(options);
  const name = `add-sub-${Date.now()}`;
  await s3.send(new CreateBucketCommand({ Bucket: name }));
  const Body = execFileSync("tar", ["-C", join(addSub, ".."), "-cz", "add_sub"]);
  await s3.send(new PutObjectCommand({ Bucket: name, Key: "model.tar.gz", Body }));
  await sagemaker.send(
    new CreateModelCommand({
      ModelName: name,
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole",
      PrimaryContainer: {
        Image: "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3",
        ModelDataUrl: `s3://${name}/model.tar.gz`,
        Environment: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "add_sub" },
      },
    }),
  );
  const variant = { VariantName: "AllTraffic", ModelName: name, InstanceType: "ml.t2.medium" as const };
  const ProductionVariants = [{ ...variant, InitialInstanceCount: 1, InitialVariantWeight: 1 }];
  await sagemaker.send(new CreateEndpointConfigCommand({ EndpointConfigName: name, ProductionVariants }));
  await sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
  await waitUntilEndpointInService(
    { client: sagemaker, maxWaitTime: 240, minDelay: 1, maxDelay: 2 },
    { EndpointName: name },
  );
  const runtime = new SageMakerRuntimeClient(options);
  const call = { EndpointName: name, ContentType: "application/json", Body: addSubBody };
  const response = await runtime.send(new InvokeEndpointCommand(call));
  const { outputs } = JSON.parse(response.Body.transformToString()) as { outputs: { data: number[] }[] };
  return outputs[0]?.data;
}
