/** Suites for implementers of hosting's ports; a door of their own, because they import the test runner. */
export { instanceAgentContract, type InstanceAgentSubject } from "./instance-agent.contract.ts";
export { modelHostContract, type ModelHostSubject } from "./model-host.contract.ts";
export { modelTreesContract, type ModelTreesSubject } from "./model-trees.contract.ts";
export { logStreamsContract, type LogStreamsOptions, type LogStreamsSubject } from "./log-streams.contract.ts";
