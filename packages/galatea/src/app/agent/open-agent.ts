import { isIPv6 } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { delay, openDeadline, rejectOnAbort, systemClock, TaskGroup, type Logger } from "@galatea/base";
import { LocalInstanceAgent } from "@galatea/hosting/instance-agent";
import { AgentServer, agentServerLimits, endAbandonedInstances } from "@galatea/hosting/instance-agent-http";
import { NodeMemory } from "@galatea/hosting/nodes";
import { hideBuckets, isLogBucket } from "@galatea/hosting/objects";
import type { DataDirectories } from "../../data-directory/index.ts";
import type { AgentOptions } from "../../options/index.ts";
import { describeMachine, openInstanceHost } from "../platform/instance-host.ts";
import { openDataDirectory } from "../platform/own-data-directory.ts";
import { openS3Objects } from "../platform/s3-objects.ts";
import { requestMemory } from "../request-memory.ts";
import { ProbeServer } from "./probe-server.ts";
import { readTlsFiles } from "../tls-files.ts";

export interface AgentProcessOptions extends AgentOptions {
  readonly directories: DataDirectories;
  /** The environment of containers, to which each container's own variables are added. */
  readonly environment: Readonly<Record<string, string>>;
  readonly log: Logger;
}

/** An agent of this machine that runs instances for platforms. Disposal ends its instances. */
export interface AgentProcess extends AsyncDisposable {
  readonly url: string;
  /** The port of the Kubernetes probes; null if they are disabled. */
  readonly probePort: number | null;
  /**
   * Makes platforms use and start other instances. Resolves when connected platforms have replaced all instances and no
   * request is in flight, at the latest after `--drain-secs`.
   */
  drain(): Promise<void>;
}

/** Time without pings after which containers of a killed agent end themselves, in seconds. */
const orphanGraceSecs = 60;
const tlsFilesEveryMs = 60_000;

/** Opens the agent. First ends instances that a killed agent with the same directory has left running. */
export async function openAgent(options: AgentProcessOptions): Promise<AgentProcess> {
  const { directories, log, listen, probePort } = options;
  const clock = systemClock;
  const tls = await readTlsFiles(options);
  await using opening = new AsyncDisposableStack();
  await openDataDirectory(opening, directories, { log });
  const address = { endpoint: options.objects, region: options.region };
  // An agent reads models, and never log lines.
  const store = hideBuckets(opening.use(await openS3Objects(address, { directories, logger: log })), isLogBucket);
  const host = await openInstanceHost(opening, {
    ...options,
    store,
    connectPort: () => null,
    containerEngine: null,
    instanceGraceSecs: orphanGraceSecs,
    requestBytesMax: requestMemory(options.requestMemoryBytes).bytesMax,
  });
  await host.resume([]);
  const node = await describeMachine(options);
  const memory = new NodeMemory({
    bytesMax: node.capacity.memoryBytes,
    reservedBytes: () => agent.reservedBytes,
  });
  const agent: LocalInstanceAgent = opening.use(new LocalInstanceAgent({ host, node, memory, clock, logger: log }));
  opening.defer(() => agent.endAll());
  const server = opening.use(
    await AgentServer.open({
      agent,
      listen: { kind: "tcp", ...listen },
      token: null,
      certificate: tls.certificate,
      clientCaPem: tls.caPem,
      limits: agentServerLimits,
      clock,
      logger: log,
    }),
  );
  const tasks = opening.use(
    new TaskGroup((error) => log.error("a task of the agent failed", { error: String(error) })),
  );
  const graceMs = options.instanceGraceSecs * 1000;
  tasks.run((closing) => endAbandonedInstances({ agent, server, graceMs, clock, logger: log }, closing));
  tasks.run((closing) => followTlsFiles(server, options, closing));
  const probes =
    probePort === null
      ? null
      : opening.use(await ProbeServer.open({ ...listen, port: probePort }, () => agent.isServing));
  const drain = async () => {
    probes?.drain();
    agent.drain();
    using deadline = openDeadline({ clock, afterMs: options.drainSecs * 1000, signal: null });
    const left = async () => {
      while (server.isFollowed && !agent.isEmpty)
        await rejectOnAbort(Promise.race([agent.removed(), server.followersChanged()]), deadline.signal);
      await server.quiet(deadline.signal);
    };
    await left().catch(() => log.warning("instances were not replaced in time, or requests in flight have not ended"));
  };
  const port = server.address.kind === "tcp" ? server.address.port : 0;
  const url = `https://${isIPv6(listen.host) ? `[${listen.host}]` : listen.host}:${port}`;
  return Object.assign(opening.move(), { url, probePort: probes?.port ?? null, drain });
}

/**
 * Reloads the certificate files when they have changed. If the new files do not belong together, logs that and keeps
 * the previous ones.
 */
async function followTlsFiles(server: AgentServer, options: AgentProcessOptions, closing: AbortSignal): Promise<never> {
  let used = await readTlsFiles(options);
  for (;;) {
    await delay(systemClock, tlsFilesEveryMs, closing);
    try {
      const found = await readTlsFiles(options);
      if (isDeepStrictEqual(found, used)) continue;
      server.setCertificate(found.certificate, found.caPem);
      used = found;
      options.log.info("the agent uses its new certificate");
    } catch (error) {
      options.log.error("the agent keeps its former certificate", { error: String(error) });
    }
  }
}
