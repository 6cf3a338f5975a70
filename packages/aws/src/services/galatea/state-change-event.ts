import { createHash } from "node:crypto";
import type { NumberedStateChange } from "@galatea/hosting";

/**
 * Returns a state change in the format of EventBridge's "SageMaker Endpoint State Change". EndpointStatus has the
 * values of DescribeEndpoint, and `Deleted` for a deleted endpoint. `cursor` is the position after this event.
 */
export function stateChangeEvent({ number, change }: NumberedStateChange) {
  const { owner, reason } = change;
  return {
    cursor: String(number),
    version: "0",
    id: idOf(number, change.endpointArn),
    "detail-type": "SageMaker Endpoint State Change",
    source: "aws.sagemaker",
    account: owner.accountId,
    time: new Date(change.timeMs).toISOString(),
    region: owner.region,
    resources: [change.endpointArn],
    detail: {
      EndpointName: change.endpointName,
      EndpointArn: change.endpointArn,
      EndpointConfigName: change.configName,
      EndpointStatus: change.status,
      ...(change.before === null ? {} : { PreviousEndpointStatus: change.before }),
      ...(reason === null ? {} : { FailureReason: reason }),
      CreationTime: change.createdMs,
      LastModifiedTime: change.timeMs,
      ProductionVariants: change.variants.map(({ name, instanceCount, weight }) => ({
        VariantName: name,
        CurrentInstanceCount: instanceCount,
        CurrentWeight: weight,
      })),
    },
  };
}

/** Returns an id that depends only on the event, in the form of a UUID, so that readers recognise duplicates. */
function idOf(number: number, arn: string): string {
  const hex = createHash("sha256").update(`${number} ${arn}`).digest("hex");
  const [a, b, c, d, e] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 15), hex.slice(15, 18), hex.slice(18, 30)];
  return `${a}-${b}-4${c}-8${d}-${e}`;
}
