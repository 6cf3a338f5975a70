import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger, systemClock } from "@galatea/base";
import { instanceAgentContract, type InstanceAgentSubject } from "../src/contracts/index.ts";
import {
  AgentServer,
  agentServerLimits,
  HttpInstanceAgent,
  type AgentAddress,
} from "../src/instance-agent-http/index.ts";
import type { InstanceAgent } from "../src/instance-agent/index.ts";
import { openLocalAgent } from "./instance-agents-fixture.ts";

const common = { clock: systemClock, logger: silentLogger };
const token = "a token of this test";

async function openOver(listen: AgentAddress, eventsMax?: number): Promise<InstanceAgentSubject> {
  await using opening = new AsyncDisposableStack();
  const local = opening.use(await openLocalAgent(eventsMax));
  const serve = async (agent: InstanceAgent) =>
    await AgentServer.open({ ...common, agent, listen, token, certificate: null, limits: agentServerLimits });
  const first = opening.use(await serve(local.agent));
  const connect = (server = first) =>
    opened.use(new HttpInstanceAgent({ ...common, address: server.address, token, trust: null }));
  const opened = opening.move();
  return {
    ...local,
    agent: connect(),
    connect: () => Promise.resolve(connect()),
    next: async () => {
      await first[Symbol.asyncDispose]();
      return connect(opened.use(await serve(await local.next())));
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

instanceAgentContract("agent at a port", (eventsMax) =>
  openOver({ kind: "tcp", host: "127.0.0.1", port: 0 }, eventsMax),
);

instanceAgentContract("agent at a socket", async (eventsMax) => {
  const directory = await mkdtemp(join(tmpdir(), "gal-agent-s-"));
  const subject = await openOver({ kind: "socket", path: join(directory, "agent.sock") }, eventsMax);
  return {
    ...subject,
    async [Symbol.asyncDispose]() {
      await subject[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
});
