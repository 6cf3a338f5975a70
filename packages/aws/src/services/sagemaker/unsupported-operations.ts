import type { UnsupportedOperations } from "../../wire/index.ts";

const withData = "put its model.tar.gz into a bucket of this platform and give CreateModel the URL";
const notHosting = "this platform only hosts models; use another tool for this";

/**
 * Matches operations on resources: a verb directly before one of the resource names, as in `CreateX`, `ListXs`,
 * `BatchAddXs`, but not `CreateYX`.
 */
const on = (things: string) =>
  new RegExp(`^[A-Z][a-z]+(?:Presigned|Subscribed|Add|Delete|Describe|Reboot|Replace)?(?:${things})`);

/** Rows for every unimplemented operation of SageMaker's model; the first match applies. */
export const unsupportedOperations: readonly UnsupportedOperations[] = [
  {
    area: "training",
    named: on("TrainingJob|TrainingSession|TrainingPlan|ReservedCapacity|UltraServers"),
    advice: `models are trained elsewhere: train with the framework itself, then ${withData}`,
  },
  {
    area: "tuning of hyperparameters",
    named: on("HyperParameterTuningJob"),
    advice: `models are tuned elsewhere; for the best one, ${withData}`,
  },
  {
    area: "AutoML",
    named: on("AutoMLJob|CandidatesForAutoMLJob"),
    advice: `models are found and trained elsewhere; for the best one, ${withData}`,
  },
  {
    area: "processing jobs",
    named: on("ProcessingJob"),
    advice:
      "data is processed elsewhere, or by the containers of a pipeline: CreateModel with Containers, then CreateTransformJob",
  },
  {
    area: "compilation and optimization",
    named: on("CompilationJob|OptimizationJob"),
    advice: `models are compiled elsewhere, for the hardware that runs them; then ${withData}`,
  },
  {
    area: "edge devices",
    named: on("Device|DeviceFleet|EdgeDeployment|EdgePackagingJob|StageDevices"),
    advice: "models run on the machines of this platform only",
  },
  {
    area: "model registry, marketplace and hubs",
    named: on("ModelPackage|ModelCard|ModelMetadata|Algorithm|Hub"),
    advice: "there is no registry: give CreateModel the image and the URL of the model's data",
  },
  {
    area: "monitoring of models",
    named: on("Monitoring|DataQualityJobDefinition|ModelBiasJob|ModelExplainabilityJob|ModelQualityJob"),
    advice:
      "use CloudWatch's metrics and logs, and captured data (DataCaptureConfig), which has to be analysed elsewhere",
  },
  {
    area: "shadow tests",
    named: on("InferenceExperiment"),
    advice:
      "an endpoint has a shadow variant without an experiment: give CreateEndpointConfig ShadowProductionVariants, and compare the variants' metrics " +
      "in CloudWatch; UpdateEndpoint promotes the shadow",
  },
  {
    area: "parts of hosting",
    named: on("InferenceRouter|EndpointPolicy"),
    advice:
      "endpoints have weighted variants, pipelines, Direct mode and multi-model containers: CreateEndpointConfig and UpdateEndpoint",
  },
  {
    area: "recommendations and benchmarks",
    named: on(
      "InferenceRecommendationsJob|ScalingConfigurationRecommendation|AIBenchmarkJob|AIRecommendationJob|AIWorkloadConfig",
    ),
    advice:
      "instances are processes of this machine, so there are no instance types to choose between; measure the endpoint itself",
  },
  {
    area: "workflows",
    named: on("Pipeline"),
    advice: "workflows run elsewhere; an inference pipeline is CreateModel with Containers",
  },
  {
    area: "labeling and human review",
    named: on("LabelingJob|FlowDefinition|HumanTaskUi|UiTemplate|Workforce|Workteam"),
    advice: notHosting,
  },
  { area: "feature store", named: on("FeatureGroup|FeatureMetadata"), advice: notHosting },
  {
    area: "experiments and lineage",
    named: on("Experiment|Trial|Action|Artifact|Context|Association|Lineage|Mlflow"),
    advice: notHosting,
  },
  {
    area: "notebooks, Studio and its applications",
    named: on(
      "NotebookInstance|CodeRepositor|Domain|UserProfile|Space|App|StudioLifecycleConfig|Image|Alias|Project|SagemakerServicecatalog|PartnerApp|Session",
    ),
    advice: notHosting,
  },
  { area: "clusters", named: on("Cluster|ComputeQuota"), advice: notHosting },
  {
    area: "jobs of a schema, search",
    named:
      /^(?:(?:Create|Delete|Describe|Stop)Job|ListJobs|(?:Describe|List)JobSchemaVersions?|Search|GetSearchSuggestions|ListResourceCatalogs)$/,
    advice: "the lists of models, endpoint configurations, endpoints and transform jobs take names, times and states",
  },
];
