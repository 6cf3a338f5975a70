import { parseS3Uri } from "../definitions/index.ts";
import type { AgentContainerSpec, AgentInstanceSpec } from "../instance-agent/index.ts";
import { grantedAccess, type InstanceCredentials, type ModelDataAccess } from "../instances/index.ts";
import type { AgentKeys } from "./pod-instance.ts";

/** No container has this name, because a host name has no colon. */
const agentName = ":agent";

/**
 * Issues the key of an instance's agent. The agent reads the models of its containers with it, and, as with every instance key, objects that are
 * neither another model's data nor another endpoint's output.
 */
export function issueAgentKeys(
  { id, containers }: AgentInstanceSpec,
  credentials: InstanceCredentials,
  { accountId, region }: { readonly accountId: string; readonly region: string },
): AgentKeys {
  return credentials.issue({
    instanceId: id,
    containerName: agentName,
    endpointName: "",
    accountId,
    region,
    logGroup: "",
    modelData: null,
    agentModelData: containers.flatMap((container) => modelDataOf(container) ?? []),
    objectPrefixes: [],
    invokableEndpoints: [],
  });
}

function modelDataOf({ models }: AgentContainerSpec): ModelDataAccess | null {
  if (models.kind === "one") return grantedAccess(models.container).modelData;
  const prefix = parseS3Uri(models.modelDataUrl);
  return prefix === null ? null : { ...prefix, kind: "prefix" };
}
