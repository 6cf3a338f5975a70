/** Two `galatea up --standby` whose instances run on two agents, over the same records in PostgreSQL and objects in an S3 service. */
import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { certificateOf, RunningAgent } from "../../packages/galatea/test/agent-process-fixture.ts";
import { freePorts, startPostgres, type PostgresServer } from "../environments/index.ts";
import { faultyConfig } from "../faults/faulty-model.ts";
import { bucket, credentials, Platform, prefix } from "../faults/platform.ts";
import { processesMarked } from "../faults/processes.ts";
import { createWorkspace, type Workspace } from "../faults/serving.ts";
import { tarball } from "../faults/tarball.ts";
import { until } from "../faults/until.ts";
import { shareMadePython } from "../shared-python.ts";
import { Replica } from "./replica-fixture.ts";

const program = readFileSync(new URL("../faults/models/faulty.py", import.meta.url));
const certificate = certificateOf("platform.galatea");

/** The target of multi-model endpoints, and the model of others. */
export const target = "model.tar.gz";

export class TwoPlatforms implements AsyncDisposable {
  readonly workspace: Workspace;
  readonly server: PostgresServer;
  readonly agents: readonly RunningAgent[];
  readonly replicas: readonly [Replica, Replica];
  /** The flags of platforms and gateways that name the agents. */
  readonly agentFlags: readonly string[];
  readonly #closing: AsyncDisposableStack;

  private constructor(
    parts: Pick<TwoPlatforms, "workspace" | "server" | "agents" | "agentFlags" | "replicas">,
    closing: AsyncDisposableStack,
  ) {
    this.workspace = parts.workspace;
    this.server = parts.server;
    this.agents = parts.agents;
    this.agentFlags = parts.agentFlags;
    this.replicas = parts.replicas;
    this.#closing = closing;
  }

  /** Opens everything except the replicas' processes, which get additional flags. */
  static async open(more: readonly string[] = []): Promise<TwoPlatforms> {
    await using opening = new AsyncDisposableStack();
    const server = opening.use(await startPostgres("newest"));
    await server.createDatabase("records");
    const service = opening.use(await Platform.open(undefined, { verified: true, port: (await freePorts(1))[0] ?? 0 }));
    const files = { "config.pbtxt": faultyConfig, "1/model.py": program };
    const body = tarball(Object.entries(files).map(([path, text]) => ({ path: `model/${path}`, body: text })));
    await service.s3.send(new PutObjectCommand({ Bucket: bucket, Key: prefix + target, Body: body }));
    const place = await createWorkspace();
    opening.defer(() => rm(place.directory, { recursive: true, force: true }));
    const agents: RunningAgent[] = [];
    for (const name of ["a", "b"]) {
      const data = join(place.directory, name);
      await shareMadePython(data);
      const flags = [`--data=${data}`, `--worker-write=${place.meeting}`];
      const agent = await RunningAgent.open({ objects: service.url, credentials, platform: certificate, flags });
      agents.push(opening.use(agent));
    }
    const pem = {
      "platform.pem": certificate.certificatePem,
      "platform-key.pem": certificate.keyPem,
      "agents.pem": agents.map((agent) => agent.certificate.certificatePem).join(""),
    };
    for (const [file, text] of Object.entries(pem)) await writeFile(join(place.directory, file), text);
    const agentFlags = [
      ...agents.map(({ url }, index) => `--agent=${"ab"[index]}=${url}`),
      `--agent-tls-cert=${place.directory}/platform.pem`,
      `--agent-tls-key=${place.directory}/platform-key.pem`,
      `--agent-tls-ca=${place.directory}/agents.pem`,
    ];
    const flags = [...agentFlags, "--platform-url=http://platform.example", ...more];
    const records = `postgres://galatea@127.0.0.1:${server.port}/records?sslmode=disable`;
    const openReplica = async (data: string) =>
      opening.use(await Replica.of({ workspace: place, data, records, objects: service.url, flags }));
    const replicas = [await openReplica("replica-0"), await openReplica("replica-1")] as const;
    return new TwoPlatforms({ workspace: place, server, agents, agentFlags, replicas }, opening.move());
  }

  /** Waits until one replica leads and the other one waits. */
  async settled(): Promise<{ readonly leader: Replica; readonly standby: Replica }> {
    const [one, other] = this.replicas;
    return await until("one replica leads and the other one is its standby", async () => {
      const roles = await Promise.all(this.replicas.map((replica) => replica.role()));
      if (roles.toSorted().join() !== "leader,standby") return null;
      return roles[0] === "leader" ? { leader: one, standby: other } : { leader: other, standby: one };
    });
  }

  /** The server processes of the instances on each agent. */
  servers(): readonly (readonly number[])[] {
    return this.agents.map(({ root }) =>
      processesMarked(`TMPDIR=${root}\0`)
        .filter(({ command }) => command.includes("--sagemaker-socket="))
        .map(({ pid }) => pid),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing[Symbol.asyncDispose]();
  }
}

/** Waits until the replica leads and accepts requests. */
export async function leads(replica: Replica): Promise<void> {
  await until("the replica leads", async () => (await replica.role()) === "leader");
}
