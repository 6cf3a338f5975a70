import cloudwatch from "./gen/cloudwatch.json" with { type: "json" };
import iam from "./gen/iam.json" with { type: "json" };
import logs from "./gen/logs.json" with { type: "json" };
import sagemakerRuntime from "./gen/sagemaker-runtime.json" with { type: "json" };
import sagemaker from "./gen/sagemaker.json" with { type: "json" };
import type { ServiceModel } from "./service-model.ts";
import sts from "./gen/sts.json" with { type: "json" };

/** The compiler infers `type: string` from JSON, so the closed unions are asserted here; service-models.test.ts checks them. */
const asModel = (json: unknown): ServiceModel => json as ServiceModel;

export const serviceModels = {
  sagemaker: asModel(sagemaker),
  "sagemaker-runtime": asModel(sagemakerRuntime),
  cloudwatch: asModel(cloudwatch),
  logs: asModel(logs),
  sts: asModel(sts),
  iam: asModel(iam),
} as const;

export type ModelledService = keyof typeof serviceModels;
