import { ApplicationAutoScalingClient } from "@aws-sdk/client-application-auto-scaling";
import { S3Client } from "@aws-sdk/client-s3";
import { SageMakerClient } from "@aws-sdk/client-sagemaker";
import { SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";

/** Clients of one life of a platform. They ask nothing twice: what was answered is to be known exactly. */
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

/** Something that is done again and again, and of which it is known what was acknowledged. */
export interface Lane {
  /** In a new life: looks at what was acknowledged in the one before. */
  begin(clients: Clients): Promise<void>;
  /** One operation, when what was done before has come to its end. */
  step(clients: Clients): Promise<void>;
  /** Looks at all that was acknowledged, when it has come to its end. */
  check(clients: Clients): Promise<void>;
}

export const bucket = "everything";

export const isNotFound = (error: unknown): boolean => {
  const { name, message, $metadata: metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  return metadata?.httpStatusCode === 404 || name === "NotFound" || /Could not find/.test(message);
};

/** Null for what is not there. */
export async function orNull<Answer>(asked: Promise<Answer>): Promise<Answer | null> {
  try {
    return await asked;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
