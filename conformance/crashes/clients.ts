import { ApplicationAutoScalingClient } from "@aws-sdk/client-application-auto-scaling";
import { S3Client } from "@aws-sdk/client-s3";
import { SageMakerClient } from "@aws-sdk/client-sagemaker";
import { SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";

/**
 * Returns clients for one run of a platform. They do not retry, so that tests know exactly which calls were
 * acknowledged.
 */
export function clientsOf(url: string) {
  const credentials = { accessKeyId: "any", secretAccessKey: "any" };
  const common = { endpoint: url, region: "us-east-1", credentials, maxAttempts: 1 };
  return {
    url,
    s3: new S3Client({ ...common, forcePathStyle: true }),
    sagemaker: new SageMakerClient(common),
    runtime: new SageMakerRuntimeClient(common),
    scaling: new ApplicationAutoScalingClient(common),
  };
}

export type Clients = ReturnType<typeof clientsOf>;

/** A repeated sequence of operations that tracks which of them were acknowledged. */
export interface Workload {
  /** Checks at the start of a run what the previous run had acknowledged. */
  begin(clients: Clients): Promise<void>;
  /** Performs one operation after the previous one has completed. */
  step(clients: Clients): Promise<void>;
  /** Checks everything that was acknowledged, after all operations have completed. */
  check(clients: Clients): Promise<void>;
}

export const bucket = "everything";

export const isNotFound = (error: unknown): boolean => {
  const { name, message, $metadata: metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  return metadata?.httpStatusCode === 404 || name === "NotFound" || /Could not find/.test(message);
};

/** Resolves with null for a missing resource. */
export async function orNull<Response>(response: Promise<Response>): Promise<Response | null> {
  try {
    return await response;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
