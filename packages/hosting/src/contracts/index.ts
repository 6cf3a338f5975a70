/**
 * Contract suites for implementations of hosting's interfaces. They are a separate module because they import the test
 * runner.
 */
export { instanceAgentContract, type InstanceAgentSubject } from "./instance-agent.contract.ts";
export { modelHostContract } from "./model-host.contract.ts";
export { modelTreesContract } from "./model-trees.contract.ts";
export { logStreamsContract } from "./log-streams.contract.ts";
