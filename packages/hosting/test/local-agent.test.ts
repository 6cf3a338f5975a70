import { instanceAgentContract } from "../src/contracts/index.ts";
import { openLocalAgent } from "./instance-agents-fixture.ts";

instanceAgentContract("agent in process", async (eventsMax) => {
  const subject = await openLocalAgent(eventsMax);
  return { ...subject, connect: () => Promise.resolve(subject.agent) };
});
