/** The instance agent over HTTP: a server for any `InstanceAgent`, and a client that implements `InstanceAgent`. */
export { endAbandonedInstances } from "./abandoned-instances.ts";
export { AgentProtocolError, PlatformSuperseded } from "./agent-protocol.ts";
export { AgentServer, agentServerLimits, type AgentAddress } from "./agent-server.ts";
export type { AgentDestination, AgentTlsOptions } from "./agent-connection.ts";
export type { HttpInstance } from "./http-instance.ts";
export { agentClientLimits, HttpInstanceAgent, type AgentClientLimits } from "./http-agent.ts";
