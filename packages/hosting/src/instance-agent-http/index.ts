/** The instance agent over HTTP: a server over any agent, and a client that is one. */
export { AgentProtocolError } from "./agent-protocol.ts";
export { AgentServer, agentServerLimits, type AgentAddress } from "./agent-server.ts";
export { HttpInstanceAgent } from "./http-agent.ts";
