import { delay, systemClock, type Logger } from "@galatea/base";
import { agentClientLimits, HttpInstanceAgent } from "@galatea/hosting/instance-agent-http";
import { noResources, parseNodeId, type NodeDescription, type NodeId } from "@galatea/hosting/nodes";
import type { AgentReference } from "../../options/index.ts";
import { readTlsFiles } from "../tls-files.ts";
import type { Leadership } from "./platform-storage.ts";

export interface RemoteAgentsOptions {
  readonly agent: readonly AgentReference[];
  readonly agentTlsCert: string | null;
  readonly agentTlsKey: string | null;
  readonly agentTlsCa: string | null;
  /** Null if no other platform can acquire the records. */
  readonly leadership: Leadership | null;
  readonly log: Logger;
}

export interface RemoteNodes {
  readonly nodes: readonly NodeDescription[];
  readonly remoteAgents: ReadonlyMap<NodeId, HttpInstanceAgent>;
}

/** Time without a response of an agent after which its instances are replaced on other nodes, in milliseconds. */
const awayMsMax = 10_000;
/**
 * Maximum time that the start of the platform waits for an agent. An agent that responds later receives instances from
 * then on.
 */
const firstResponseMsMax = 5000;

/** Opens the agents of `--agent`. Resolves with their nodes; null without the flag. */
export async function openRemoteAgents(
  opening: AsyncDisposableStack,
  options: RemoteAgentsOptions,
): Promise<RemoteNodes | null> {
  if (options.agent.length === 0) return null;
  const remoteAgents = await openAgentClients(opening, options);
  const nodes = await Promise.all([...remoteAgents].map((each) => describeNode(each, options.log)));
  return { nodes, remoteAgents };
}

/** Opens a client of each agent of `--agent`. Connects later. */
export async function openAgentClients(
  opening: AsyncDisposableStack,
  { agent: references, agentTlsCert, agentTlsKey, agentTlsCa, leadership, log }: RemoteAgentsOptions,
): Promise<ReadonlyMap<NodeId, HttpInstanceAgent>> {
  const paths = { tlsCert: agentTlsCert ?? "", tlsKey: agentTlsKey ?? "", tlsCa: agentTlsCa ?? "" };
  const { certificate, caPem } = await readTlsFiles(paths, "--agent-tls");
  const clients = new Map<NodeId, HttpInstanceAgent>();
  for (const { name, host, port } of references) {
    const agent = new HttpInstanceAgent({
      address: { kind: "tcp", host, port },
      token: null,
      trust: { caPem, serverName: host, certificate },
      epoch: leadership?.epoch ?? null,
      leavesInstances: true,
      limits: { ...agentClientLimits, awayMsMax },
      clock: systemClock,
      logger: log,
    });
    clients.set(parseNodeId(name), opening.use(agent));
  }
  return clients;
}

/** Resolves with the agent's machine, or with a node without capacity if the agent does not respond in time. */
async function describeNode([id, agent]: readonly [NodeId, HttpInstanceAgent], log: Logger): Promise<NodeDescription> {
  const connected = new AbortController();
  const late = delay(systemClock, firstResponseMsMax, connected.signal).then(() => null);
  late.catch(() => {});
  const waiting = new AbortController();
  const found = await Promise.race([agent.connect(waiting.signal), late]);
  connected.abort();
  waiting.abort(new Error("the agent has not responded in time"));
  if (found !== null) return { ...found, id };
  const error = agent.failure instanceof Error ? agent.failure.message : "no response";
  log.warning("an instance agent does not respond; it gets instances when it does", { agent: id, error });
  return { id, capacity: noResources, labels: {} };
}
