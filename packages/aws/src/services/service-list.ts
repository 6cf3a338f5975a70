import type { ServiceRow } from "../wire/index.ts";
import { autoscalingService } from "./application-autoscaling/index.ts";
import { cloudwatchService } from "./cloudwatch/index.ts";
import { galateaService } from "./galatea/index.ts";
import { iamService } from "./iam/index.ts";
import { logsService } from "./logs/index.ts";
import { s3Service } from "./s3/index.ts";
import { openAiService, runtimeService } from "./sagemaker-runtime/index.ts";
import { sagemakerService } from "./sagemaker/index.ts";
import { snsService } from "./sns/index.ts";
import { stsService } from "./sts/index.ts";

/**
 * The AWS services of the platform. To add a service, add a folder and a line here. The folder's `service.ts` returns
 * the service's row. `node scripts/aws-spec.ts` writes the model and types of the service's operations to `spec/gen`.
 */
const services = [
  sagemakerService,
  runtimeService,
  openAiService,
  s3Service,
  cloudwatchService,
  autoscalingService,
  logsService,
  stsService,
  iamService,
  galateaService,
  snsService,
] as const;

/** The dependencies of all services together. */
export type AwsServicesDependencies = IntersectionOf<Parameters<(typeof services)[number]>[0]>;

type IntersectionOf<Union> = (Union extends unknown ? (part: Union) => void : never) extends (part: infer All) => void
  ? All
  : never;

export function awsServices(dependencies: AwsServicesDependencies): readonly ServiceRow[] {
  return services.map((service): ServiceRow => service(dependencies));
}
