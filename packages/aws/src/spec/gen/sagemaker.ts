/** Written by scripts/aws-types.ts from sagemaker.json. Inputs are as parsed and checked against that model. */
export interface SagemakerOperations {
  readonly AddTags: { readonly input: AddTagsInputInput; readonly output: AddTagsOutputOutput };
  readonly CreateEndpoint: { readonly input: CreateEndpointInputInput; readonly output: CreateEndpointOutputOutput };
  readonly CreateEndpointConfig: { readonly input: CreateEndpointConfigInputInput; readonly output: CreateEndpointConfigOutputOutput };
  readonly CreateInferenceComponent: { readonly input: CreateInferenceComponentInputInput; readonly output: CreateInferenceComponentOutputOutput };
  readonly CreateModel: { readonly input: CreateModelInputInput; readonly output: CreateModelOutputOutput };
  readonly CreateTransformJob: { readonly input: CreateTransformJobRequestInput; readonly output: CreateTransformJobResponseOutput };
  readonly DeleteEndpoint: { readonly input: DeleteEndpointInputInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteEndpointConfig: { readonly input: DeleteEndpointConfigInputInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteInferenceComponent: { readonly input: DeleteInferenceComponentInputInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteModel: { readonly input: DeleteModelInputInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteTags: { readonly input: DeleteTagsInputInput; readonly output: DeleteTagsOutputOutput };
  readonly DescribeEndpoint: { readonly input: DescribeEndpointInputInput; readonly output: DescribeEndpointOutputOutput };
  readonly DescribeEndpointConfig: { readonly input: DescribeEndpointConfigInputInput; readonly output: DescribeEndpointConfigOutputOutput };
  readonly DescribeInferenceComponent: { readonly input: DescribeInferenceComponentInputInput; readonly output: DescribeInferenceComponentOutputOutput };
  readonly DescribeModel: { readonly input: DescribeModelInputInput; readonly output: DescribeModelOutputOutput };
  readonly DescribeTransformJob: { readonly input: DescribeTransformJobRequestInput; readonly output: DescribeTransformJobResponseOutput };
  readonly ListEndpointConfigs: { readonly input: ListEndpointConfigsInputInput; readonly output: ListEndpointConfigsOutputOutput };
  readonly ListEndpoints: { readonly input: ListEndpointsInputInput; readonly output: ListEndpointsOutputOutput };
  readonly ListInferenceComponents: { readonly input: ListInferenceComponentsInputInput; readonly output: ListInferenceComponentsOutputOutput };
  readonly ListModels: { readonly input: ListModelsInputInput; readonly output: ListModelsOutputOutput };
  readonly ListTags: { readonly input: ListTagsInputInput; readonly output: ListTagsOutputOutput };
  readonly ListTransformJobs: { readonly input: ListTransformJobsRequestInput; readonly output: ListTransformJobsResponseOutput };
  readonly StopTransformJob: { readonly input: StopTransformJobRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly UpdateEndpoint: { readonly input: UpdateEndpointInputInput; readonly output: UpdateEndpointOutputOutput };
  readonly UpdateEndpointWeightsAndCapacities: { readonly input: UpdateEndpointWeightsAndCapacitiesInputInput; readonly output: UpdateEndpointWeightsAndCapacitiesOutputOutput };
  readonly UpdateInferenceComponent: { readonly input: UpdateInferenceComponentInputInput; readonly output: UpdateInferenceComponentOutputOutput };
  readonly UpdateInferenceComponentRuntimeConfig: { readonly input: UpdateInferenceComponentRuntimeConfigInputInput; readonly output: UpdateInferenceComponentRuntimeConfigOutputOutput };
}

/** The structures that inputs are made of, by their published names. */
export interface SagemakerInputs {
  readonly AcceleratorPartitionLayout: AcceleratorPartitionLayoutInput;
  readonly AddTagsInput: AddTagsInputInput;
  readonly AdditionalModelDataSource: AdditionalModelDataSourceInput;
  readonly Alarm: AlarmInput;
  readonly AsyncInferenceClientConfig: AsyncInferenceClientConfigInput;
  readonly AsyncInferenceConfig: AsyncInferenceConfigInput;
  readonly AsyncInferenceNotificationConfig: AsyncInferenceNotificationConfigInput;
  readonly AsyncInferenceOutputConfig: AsyncInferenceOutputConfigInput;
  readonly AutoRollbackConfig: AutoRollbackConfigInput;
  readonly BatchDataCaptureConfig: BatchDataCaptureConfigInput;
  readonly BlueGreenUpdatePolicy: BlueGreenUpdatePolicyInput;
  readonly CapacitySize: CapacitySizeInput;
  readonly CaptureContentTypeHeader: CaptureContentTypeHeaderInput;
  readonly CaptureOption: CaptureOptionInput;
  readonly ClarifyExplainerConfig: ClarifyExplainerConfigInput;
  readonly ClarifyInferenceConfig: ClarifyInferenceConfigInput;
  readonly ClarifyShapBaselineConfig: ClarifyShapBaselineConfigInput;
  readonly ClarifyShapConfig: ClarifyShapConfigInput;
  readonly ClarifyTextConfig: ClarifyTextConfigInput;
  readonly ContainerDefinition: ContainerDefinitionInput;
  readonly ContainerMetricsConfig: ContainerMetricsConfigInput;
  readonly CreateEndpointConfigInput: CreateEndpointConfigInputInput;
  readonly CreateEndpointInput: CreateEndpointInputInput;
  readonly CreateInferenceComponentInput: CreateInferenceComponentInputInput;
  readonly CreateModelInput: CreateModelInputInput;
  readonly CreateTransformJobRequest: CreateTransformJobRequestInput;
  readonly CrossRegionTrafficConfig: CrossRegionTrafficConfigInput;
  readonly DataCaptureConfig: DataCaptureConfigInput;
  readonly DataProcessing: DataProcessingInput;
  readonly DeleteEndpointConfigInput: DeleteEndpointConfigInputInput;
  readonly DeleteEndpointInput: DeleteEndpointInputInput;
  readonly DeleteInferenceComponentInput: DeleteInferenceComponentInputInput;
  readonly DeleteModelInput: DeleteModelInputInput;
  readonly DeleteTagsInput: DeleteTagsInputInput;
  readonly DeploymentConfig: DeploymentConfigInput;
  readonly DescribeEndpointConfigInput: DescribeEndpointConfigInputInput;
  readonly DescribeEndpointInput: DescribeEndpointInputInput;
  readonly DescribeInferenceComponentInput: DescribeInferenceComponentInputInput;
  readonly DescribeModelInput: DescribeModelInputInput;
  readonly DescribeTransformJobRequest: DescribeTransformJobRequestInput;
  readonly DesiredWeightAndCapacity: DesiredWeightAndCapacityInput;
  readonly ExperimentConfig: ExperimentConfigInput;
  readonly ExplainerConfig: ExplainerConfigInput;
  readonly ImageConfig: ImageConfigInput;
  readonly InferenceComponentAvailabilityZoneBalance: InferenceComponentAvailabilityZoneBalanceInput;
  readonly InferenceComponentCapacitySize: InferenceComponentCapacitySizeInput;
  readonly InferenceComponentComputeResourceRequirements: InferenceComponentComputeResourceRequirementsInput;
  readonly InferenceComponentContainerSpecification: InferenceComponentContainerSpecificationInput;
  readonly InferenceComponentDataCacheConfig: InferenceComponentDataCacheConfigInput;
  readonly InferenceComponentDeploymentConfig: InferenceComponentDeploymentConfigInput;
  readonly InferenceComponentRollingUpdatePolicy: InferenceComponentRollingUpdatePolicyInput;
  readonly InferenceComponentRuntimeConfig: InferenceComponentRuntimeConfigInput;
  readonly InferenceComponentSchedulingConfig: InferenceComponentSchedulingConfigInput;
  readonly InferenceComponentSpecification: InferenceComponentSpecificationInput;
  readonly InferenceComponentStartupParameters: InferenceComponentStartupParametersInput;
  readonly InferenceExecutionConfig: InferenceExecutionConfigInput;
  readonly InferenceHubAccessConfig: InferenceHubAccessConfigInput;
  readonly InstancePool: InstancePoolInput;
  readonly ListEndpointConfigsInput: ListEndpointConfigsInputInput;
  readonly ListEndpointsInput: ListEndpointsInputInput;
  readonly ListInferenceComponentsInput: ListInferenceComponentsInputInput;
  readonly ListModelsInput: ListModelsInputInput;
  readonly ListTagsInput: ListTagsInputInput;
  readonly ListTransformJobsRequest: ListTransformJobsRequestInput;
  readonly MetricsConfig: MetricsConfigInput;
  readonly MetricsEndpoint: MetricsEndpointInput;
  readonly ModelAccessConfig: ModelAccessConfigInput;
  readonly ModelClientConfig: ModelClientConfigInput;
  readonly ModelDataSource: ModelDataSourceInput;
  readonly MultiModelConfig: MultiModelConfigInput;
  readonly PrefixAwareRoutingConfig: PrefixAwareRoutingConfigInput;
  readonly ProductionVariant: ProductionVariantInput;
  readonly ProductionVariantCapacityReservationConfig: ProductionVariantCapacityReservationConfigInput;
  readonly ProductionVariantCoreDumpConfig: ProductionVariantCoreDumpConfigInput;
  readonly ProductionVariantManagedInstanceScaling: ProductionVariantManagedInstanceScalingInput;
  readonly ProductionVariantManagedInstanceScalingScaleInPolicy: ProductionVariantManagedInstanceScalingScaleInPolicyInput;
  readonly ProductionVariantRoutingConfig: ProductionVariantRoutingConfigInput;
  readonly ProductionVariantServerlessConfig: ProductionVariantServerlessConfigInput;
  readonly ProductionVariantServerlessUpdateConfig: ProductionVariantServerlessUpdateConfigInput;
  readonly RepositoryAuthConfig: RepositoryAuthConfigInput;
  readonly RollingUpdatePolicy: RollingUpdatePolicyInput;
  readonly S3ModelDataSource: S3ModelDataSourceInput;
  readonly StopTransformJobRequest: StopTransformJobRequestInput;
  readonly Tag: TagInput;
  readonly TrafficRoutingConfig: TrafficRoutingConfigInput;
  readonly TransformDataSource: TransformDataSourceInput;
  readonly TransformInput: TransformInputInput;
  readonly TransformOutput: TransformOutputInput;
  readonly TransformResources: TransformResourcesInput;
  readonly TransformS3DataSource: TransformS3DataSourceInput;
  readonly UpdateEndpointInput: UpdateEndpointInputInput;
  readonly UpdateEndpointWeightsAndCapacitiesInput: UpdateEndpointWeightsAndCapacitiesInputInput;
  readonly UpdateInferenceComponentInput: UpdateInferenceComponentInputInput;
  readonly UpdateInferenceComponentRuntimeConfigInput: UpdateInferenceComponentRuntimeConfigInputInput;
  readonly VariantProperty: VariantPropertyInput;
  readonly VpcConfig: VpcConfigInput;
}

interface AcceleratorPartitionLayoutInput {
  readonly AcceleratorPartitionTypes?: readonly string[];
}

interface AddTagsInputInput {
  readonly ResourceArn: string;
  readonly Tags: readonly TagInput[];
}

interface AdditionalModelDataSourceInput {
  readonly ChannelName: string;
  readonly S3DataSource: S3ModelDataSourceInput;
}

interface AlarmInput {
  readonly AlarmName?: string;
}

interface AsyncInferenceClientConfigInput {
  readonly MaxConcurrentInvocationsPerInstance?: number;
}

interface AsyncInferenceConfigInput {
  readonly ClientConfig?: AsyncInferenceClientConfigInput;
  readonly OutputConfig: AsyncInferenceOutputConfigInput;
}

interface AsyncInferenceNotificationConfigInput {
  readonly SuccessTopic?: string;
  readonly ErrorTopic?: string;
  readonly IncludeInferenceResponseIn?: readonly ("SUCCESS_NOTIFICATION_TOPIC" | "ERROR_NOTIFICATION_TOPIC")[];
}

interface AsyncInferenceOutputConfigInput {
  readonly KmsKeyId?: string;
  readonly S3OutputPath?: string;
  readonly NotificationConfig?: AsyncInferenceNotificationConfigInput;
  readonly S3FailurePath?: string;
}

interface AutoRollbackConfigInput {
  readonly Alarms?: readonly AlarmInput[];
}

interface BatchDataCaptureConfigInput {
  readonly DestinationS3Uri: string;
  readonly KmsKeyId?: string;
  readonly GenerateInferenceId?: boolean;
}

interface BlueGreenUpdatePolicyInput {
  readonly TrafficRoutingConfiguration: TrafficRoutingConfigInput;
  readonly TerminationWaitInSeconds?: number;
  readonly MaximumExecutionTimeoutInSeconds?: number;
}

interface CapacitySizeInput {
  readonly Type: "INSTANCE_COUNT" | "CAPACITY_PERCENT";
  readonly Value: number;
}

interface CaptureContentTypeHeaderInput {
  readonly CsvContentTypes?: readonly string[];
  readonly JsonContentTypes?: readonly string[];
}

interface CaptureOptionInput {
  readonly CaptureMode: "Input" | "Output" | "InputAndOutput";
}

interface ClarifyExplainerConfigInput {
  readonly EnableExplanations?: string;
  readonly InferenceConfig?: ClarifyInferenceConfigInput;
  readonly ShapConfig: ClarifyShapConfigInput;
}

interface ClarifyInferenceConfigInput {
  readonly FeaturesAttribute?: string;
  readonly ContentTemplate?: string;
  readonly MaxRecordCount?: number;
  readonly MaxPayloadInMB?: number;
  readonly ProbabilityIndex?: number;
  readonly LabelIndex?: number;
  readonly ProbabilityAttribute?: string;
  readonly LabelAttribute?: string;
  readonly LabelHeaders?: readonly string[];
  readonly FeatureHeaders?: readonly string[];
  readonly FeatureTypes?: readonly ("numerical" | "categorical" | "text")[];
}

interface ClarifyShapBaselineConfigInput {
  readonly MimeType?: string;
  readonly ShapBaseline?: string;
  readonly ShapBaselineUri?: string;
}

interface ClarifyShapConfigInput {
  readonly ShapBaselineConfig: ClarifyShapBaselineConfigInput;
  readonly NumberOfSamples?: number;
  readonly UseLogit?: boolean;
  readonly Seed?: number;
  readonly TextConfig?: ClarifyTextConfigInput;
}

interface ClarifyTextConfigInput {
  readonly Language: "af" | "sq" | "ar" | "hy" | "eu" | "bn" | "bg" | "ca" | "zh" | "hr" | "cs" | "da" | "nl" | "en" | "et" | "fi" | "fr" | "de" | "el" | "gu" | "he" | "hi" | "hu" | "is" | "id" | "ga" | "it" | "kn" | "ky" | "lv" | "lt" | "lb" | "mk" | "ml" | "mr" | "ne" | "nb" | "fa" | "pl" | "pt" | "ro" | "ru" | "sa" | "sr" | "tn" | "si" | "sk" | "sl" | "es" | "sv" | "tl" | "ta" | "tt" | "te" | "tr" | "uk" | "ur" | "yo" | "lij" | "xx";
  readonly Granularity: "token" | "sentence" | "paragraph";
}

interface ContainerDefinitionInput {
  readonly ContainerHostname?: string;
  readonly Image?: string;
  readonly ImageConfig?: ImageConfigInput;
  readonly Mode?: "SingleModel" | "MultiModel";
  readonly ModelDataUrl?: string;
  readonly ModelDataSource?: ModelDataSourceInput;
  readonly AdditionalModelDataSources?: readonly AdditionalModelDataSourceInput[];
  readonly Environment?: Readonly<Record<string, string>>;
  readonly ModelPackageName?: string;
  readonly InferenceSpecificationName?: string;
  readonly MultiModelConfig?: MultiModelConfigInput;
  readonly ContainerMetricsConfig?: ContainerMetricsConfigInput;
}

interface ContainerMetricsConfigInput {
  readonly MetricsEndpoints?: readonly MetricsEndpointInput[];
}

interface CreateEndpointConfigInputInput {
  readonly EndpointConfigName: string;
  readonly ProductionVariants: readonly ProductionVariantInput[];
  readonly DataCaptureConfig?: DataCaptureConfigInput;
  readonly Tags?: readonly TagInput[];
  readonly KmsKeyId?: string;
  readonly AsyncInferenceConfig?: AsyncInferenceConfigInput;
  readonly ExplainerConfig?: ExplainerConfigInput;
  readonly ShadowProductionVariants?: readonly ProductionVariantInput[];
  readonly ExecutionRoleArn?: string;
  readonly VpcConfig?: VpcConfigInput;
  readonly EnableNetworkIsolation?: boolean;
  readonly MetricsConfig?: MetricsConfigInput;
  readonly CrossRegionTrafficConfig?: CrossRegionTrafficConfigInput;
}

interface CreateEndpointInputInput {
  readonly EndpointName: string;
  readonly EndpointConfigName: string;
  readonly DeploymentConfig?: DeploymentConfigInput;
  readonly Tags?: readonly TagInput[];
}

interface CreateInferenceComponentInputInput {
  readonly InferenceComponentName: string;
  readonly EndpointName: string;
  readonly VariantName?: string;
  readonly Specification?: InferenceComponentSpecificationInput;
  readonly Specifications?: readonly InferenceComponentSpecificationInput[];
  readonly RuntimeConfig?: InferenceComponentRuntimeConfigInput;
  readonly Tags?: readonly TagInput[];
}

interface CreateModelInputInput {
  readonly ModelName: string;
  readonly PrimaryContainer?: ContainerDefinitionInput;
  readonly Containers?: readonly ContainerDefinitionInput[];
  readonly InferenceExecutionConfig?: InferenceExecutionConfigInput;
  readonly ExecutionRoleArn?: string;
  readonly Tags?: readonly TagInput[];
  readonly VpcConfig?: VpcConfigInput;
  readonly EnableNetworkIsolation?: boolean;
}

interface CreateTransformJobRequestInput {
  readonly TransformJobName: string;
  readonly ModelName: string;
  readonly MaxConcurrentTransforms?: number;
  readonly ModelClientConfig?: ModelClientConfigInput;
  readonly MaxPayloadInMB?: number;
  readonly BatchStrategy?: "MultiRecord" | "SingleRecord";
  readonly Environment?: Readonly<Record<string, string>>;
  readonly TransformInput: TransformInputInput;
  readonly TransformOutput: TransformOutputInput;
  readonly DataCaptureConfig?: BatchDataCaptureConfigInput;
  readonly TransformResources: TransformResourcesInput;
  readonly DataProcessing?: DataProcessingInput;
  readonly Tags?: readonly TagInput[];
  readonly ExperimentConfig?: ExperimentConfigInput;
}

interface CrossRegionTrafficConfigInput {
  readonly MaxInvocationsPerSecondPerInstance: number;
  readonly MaxCrossRegionPercentPerEndpoint: number;
}

interface DataCaptureConfigInput {
  readonly EnableCapture?: boolean;
  readonly InitialSamplingPercentage: number;
  readonly DestinationS3Uri: string;
  readonly KmsKeyId?: string;
  readonly CaptureOptions: readonly CaptureOptionInput[];
  readonly CaptureContentTypeHeader?: CaptureContentTypeHeaderInput;
}

interface DataProcessingInput {
  readonly InputFilter?: string;
  readonly OutputFilter?: string;
  readonly JoinSource?: "Input" | "None";
}

interface DeleteEndpointConfigInputInput {
  readonly EndpointConfigName: string;
}

interface DeleteEndpointInputInput {
  readonly EndpointName: string;
}

interface DeleteInferenceComponentInputInput {
  readonly InferenceComponentName: string;
}

interface DeleteModelInputInput {
  readonly ModelName: string;
}

interface DeleteTagsInputInput {
  readonly ResourceArn: string;
  readonly TagKeys: readonly string[];
}

interface DeploymentConfigInput {
  readonly BlueGreenUpdatePolicy?: BlueGreenUpdatePolicyInput;
  readonly RollingUpdatePolicy?: RollingUpdatePolicyInput;
  readonly AutoRollbackConfiguration?: AutoRollbackConfigInput;
}

interface DescribeEndpointConfigInputInput {
  readonly EndpointConfigName: string;
}

interface DescribeEndpointInputInput {
  readonly EndpointName: string;
}

interface DescribeInferenceComponentInputInput {
  readonly InferenceComponentName: string;
}

interface DescribeModelInputInput {
  readonly ModelName: string;
}

interface DescribeTransformJobRequestInput {
  readonly TransformJobName: string;
}

interface DesiredWeightAndCapacityInput {
  readonly VariantName: string;
  readonly DesiredWeight?: number;
  readonly DesiredInstanceCount?: number;
  readonly ServerlessUpdateConfig?: ProductionVariantServerlessUpdateConfigInput;
}

interface ExperimentConfigInput {
  readonly ExperimentName?: string;
  readonly TrialName?: string;
  readonly TrialComponentDisplayName?: string;
  readonly RunName?: string;
}

interface ExplainerConfigInput {
  readonly ClarifyExplainerConfig?: ClarifyExplainerConfigInput;
}

interface ImageConfigInput {
  readonly RepositoryAccessMode: "Platform" | "Vpc";
  readonly RepositoryAuthConfig?: RepositoryAuthConfigInput;
}

interface InferenceComponentAvailabilityZoneBalanceInput {
  readonly EnforcementMode: "PERMISSIVE";
  readonly MaxImbalance?: number;
}

interface InferenceComponentCapacitySizeInput {
  readonly Type: "COPY_COUNT" | "CAPACITY_PERCENT";
  readonly Value: number;
}

interface InferenceComponentComputeResourceRequirementsInput {
  readonly NumberOfCpuCoresRequired?: number;
  readonly NumberOfAcceleratorDevicesRequired?: number;
  readonly MinMemoryRequiredInMb: number;
  readonly MaxMemoryRequiredInMb?: number;
  readonly AcceleratorPartitionType?: string;
}

interface InferenceComponentContainerSpecificationInput {
  readonly Image?: string;
  readonly ArtifactUrl?: string;
  readonly Environment?: Readonly<Record<string, string>>;
  readonly ContainerMetricsConfig?: ContainerMetricsConfigInput;
}

interface InferenceComponentDataCacheConfigInput {
  readonly EnableCaching: boolean;
}

interface InferenceComponentDeploymentConfigInput {
  readonly RollingUpdatePolicy: InferenceComponentRollingUpdatePolicyInput;
  readonly AutoRollbackConfiguration?: AutoRollbackConfigInput;
}

interface InferenceComponentRollingUpdatePolicyInput {
  readonly MaximumBatchSize: InferenceComponentCapacitySizeInput;
  readonly WaitIntervalInSeconds: number;
  readonly MaximumExecutionTimeoutInSeconds?: number;
  readonly RollbackMaximumBatchSize?: InferenceComponentCapacitySizeInput;
}

interface InferenceComponentRuntimeConfigInput {
  readonly CopyCount: number;
}

interface InferenceComponentSchedulingConfigInput {
  readonly PlacementStrategy: "SPREAD" | "BINPACK";
  readonly AvailabilityZoneBalance?: InferenceComponentAvailabilityZoneBalanceInput;
}

interface InferenceComponentSpecificationInput {
  readonly InstanceType?: "ml.t2.medium" | "ml.t2.large" | "ml.t2.xlarge" | "ml.t2.2xlarge" | "ml.m4.xlarge" | "ml.m4.2xlarge" | "ml.m4.4xlarge" | "ml.m4.10xlarge" | "ml.m4.16xlarge" | "ml.m5.large" | "ml.m5.xlarge" | "ml.m5.2xlarge" | "ml.m5.4xlarge" | "ml.m5.12xlarge" | "ml.m5.24xlarge" | "ml.m5d.large" | "ml.m5d.xlarge" | "ml.m5d.2xlarge" | "ml.m5d.4xlarge" | "ml.m5d.12xlarge" | "ml.m5d.24xlarge" | "ml.c4.large" | "ml.c4.xlarge" | "ml.c4.2xlarge" | "ml.c4.4xlarge" | "ml.c4.8xlarge" | "ml.p2.xlarge" | "ml.p2.8xlarge" | "ml.p2.16xlarge" | "ml.p3.2xlarge" | "ml.p3.8xlarge" | "ml.p3.16xlarge" | "ml.c5.large" | "ml.c5.xlarge" | "ml.c5.2xlarge" | "ml.c5.4xlarge" | "ml.c5.9xlarge" | "ml.c5.18xlarge" | "ml.c5d.large" | "ml.c5d.xlarge" | "ml.c5d.2xlarge" | "ml.c5d.4xlarge" | "ml.c5d.9xlarge" | "ml.c5d.18xlarge" | "ml.g4dn.xlarge" | "ml.g4dn.2xlarge" | "ml.g4dn.4xlarge" | "ml.g4dn.8xlarge" | "ml.g4dn.12xlarge" | "ml.g4dn.16xlarge" | "ml.r5.large" | "ml.r5.xlarge" | "ml.r5.2xlarge" | "ml.r5.4xlarge" | "ml.r5.12xlarge" | "ml.r5.24xlarge" | "ml.r5d.large" | "ml.r5d.xlarge" | "ml.r5d.2xlarge" | "ml.r5d.4xlarge" | "ml.r5d.12xlarge" | "ml.r5d.24xlarge" | "ml.inf1.xlarge" | "ml.inf1.2xlarge" | "ml.inf1.6xlarge" | "ml.inf1.24xlarge" | "ml.dl1.24xlarge" | "ml.c6i.large" | "ml.c6i.xlarge" | "ml.c6i.2xlarge" | "ml.c6i.4xlarge" | "ml.c6i.8xlarge" | "ml.c6i.12xlarge" | "ml.c6i.16xlarge" | "ml.c6i.24xlarge" | "ml.c6i.32xlarge" | "ml.m6i.large" | "ml.m6i.xlarge" | "ml.m6i.2xlarge" | "ml.m6i.4xlarge" | "ml.m6i.8xlarge" | "ml.m6i.12xlarge" | "ml.m6i.16xlarge" | "ml.m6i.24xlarge" | "ml.m6i.32xlarge" | "ml.r6i.large" | "ml.r6i.xlarge" | "ml.r6i.2xlarge" | "ml.r6i.4xlarge" | "ml.r6i.8xlarge" | "ml.r6i.12xlarge" | "ml.r6i.16xlarge" | "ml.r6i.24xlarge" | "ml.r6i.32xlarge" | "ml.g5.xlarge" | "ml.g5.2xlarge" | "ml.g5.4xlarge" | "ml.g5.8xlarge" | "ml.g5.12xlarge" | "ml.g5.16xlarge" | "ml.g5.24xlarge" | "ml.g5.48xlarge" | "ml.g6.xlarge" | "ml.g6.2xlarge" | "ml.g6.4xlarge" | "ml.g6.8xlarge" | "ml.g6.12xlarge" | "ml.g6.16xlarge" | "ml.g6.24xlarge" | "ml.g6.48xlarge" | "ml.r8g.medium" | "ml.r8g.large" | "ml.r8g.xlarge" | "ml.r8g.2xlarge" | "ml.r8g.4xlarge" | "ml.r8g.8xlarge" | "ml.r8g.12xlarge" | "ml.r8g.16xlarge" | "ml.r8g.24xlarge" | "ml.r8g.48xlarge" | "ml.g6e.xlarge" | "ml.g6e.2xlarge" | "ml.g6e.4xlarge" | "ml.g6e.8xlarge" | "ml.g6e.12xlarge" | "ml.g6e.16xlarge" | "ml.g6e.24xlarge" | "ml.g6e.48xlarge" | "ml.g7e.2xlarge" | "ml.g7e.4xlarge" | "ml.g7e.8xlarge" | "ml.g7e.12xlarge" | "ml.g7e.24xlarge" | "ml.g7e.48xlarge" | "ml.g7.2xlarge" | "ml.g7.4xlarge" | "ml.g7.8xlarge" | "ml.g7.12xlarge" | "ml.g7.24xlarge" | "ml.g7.48xlarge" | "ml.p4d.24xlarge" | "ml.c7g.large" | "ml.c7g.xlarge" | "ml.c7g.2xlarge" | "ml.c7g.4xlarge" | "ml.c7g.8xlarge" | "ml.c7g.12xlarge" | "ml.c7g.16xlarge" | "ml.m6g.large" | "ml.m6g.xlarge" | "ml.m6g.2xlarge" | "ml.m6g.4xlarge" | "ml.m6g.8xlarge" | "ml.m6g.12xlarge" | "ml.m6g.16xlarge" | "ml.m6gd.large" | "ml.m6gd.xlarge" | "ml.m6gd.2xlarge" | "ml.m6gd.4xlarge" | "ml.m6gd.8xlarge" | "ml.m6gd.12xlarge" | "ml.m6gd.16xlarge" | "ml.c6g.large" | "ml.c6g.xlarge" | "ml.c6g.2xlarge" | "ml.c6g.4xlarge" | "ml.c6g.8xlarge" | "ml.c6g.12xlarge" | "ml.c6g.16xlarge" | "ml.c6gd.large" | "ml.c6gd.xlarge" | "ml.c6gd.2xlarge" | "ml.c6gd.4xlarge" | "ml.c6gd.8xlarge" | "ml.c6gd.12xlarge" | "ml.c6gd.16xlarge" | "ml.c6gn.large" | "ml.c6gn.xlarge" | "ml.c6gn.2xlarge" | "ml.c6gn.4xlarge" | "ml.c6gn.8xlarge" | "ml.c6gn.12xlarge" | "ml.c6gn.16xlarge" | "ml.r6g.large" | "ml.r6g.xlarge" | "ml.r6g.2xlarge" | "ml.r6g.4xlarge" | "ml.r6g.8xlarge" | "ml.r6g.12xlarge" | "ml.r6g.16xlarge" | "ml.r6gd.large" | "ml.r6gd.xlarge" | "ml.r6gd.2xlarge" | "ml.r6gd.4xlarge" | "ml.r6gd.8xlarge" | "ml.r6gd.12xlarge" | "ml.r6gd.16xlarge" | "ml.p4de.24xlarge" | "ml.trn1.2xlarge" | "ml.trn1.32xlarge" | "ml.trn1n.32xlarge" | "ml.trn2.48xlarge" | "ml.inf2.xlarge" | "ml.inf2.8xlarge" | "ml.inf2.24xlarge" | "ml.inf2.48xlarge" | "ml.p5.48xlarge" | "ml.p5e.48xlarge" | "ml.p5en.48xlarge" | "ml.m7i.large" | "ml.m7i.xlarge" | "ml.m7i.2xlarge" | "ml.m7i.4xlarge" | "ml.m7i.8xlarge" | "ml.m7i.12xlarge" | "ml.m7i.16xlarge" | "ml.m7i.24xlarge" | "ml.m7i.48xlarge" | "ml.c7i.large" | "ml.c7i.xlarge" | "ml.c7i.2xlarge" | "ml.c7i.4xlarge" | "ml.c7i.8xlarge" | "ml.c7i.12xlarge" | "ml.c7i.16xlarge" | "ml.c7i.24xlarge" | "ml.c7i.48xlarge" | "ml.r7i.large" | "ml.r7i.xlarge" | "ml.r7i.2xlarge" | "ml.r7i.4xlarge" | "ml.r7i.8xlarge" | "ml.r7i.12xlarge" | "ml.r7i.16xlarge" | "ml.r7i.24xlarge" | "ml.r7i.48xlarge" | "ml.c8g.medium" | "ml.c8g.large" | "ml.c8g.xlarge" | "ml.c8g.2xlarge" | "ml.c8g.4xlarge" | "ml.c8g.8xlarge" | "ml.c8g.12xlarge" | "ml.c8g.16xlarge" | "ml.c8g.24xlarge" | "ml.c8g.48xlarge" | "ml.r7gd.medium" | "ml.r7gd.large" | "ml.r7gd.xlarge" | "ml.r7gd.2xlarge" | "ml.r7gd.4xlarge" | "ml.r7gd.8xlarge" | "ml.r7gd.12xlarge" | "ml.r7gd.16xlarge" | "ml.m8g.medium" | "ml.m8g.large" | "ml.m8g.xlarge" | "ml.m8g.2xlarge" | "ml.m8g.4xlarge" | "ml.m8g.8xlarge" | "ml.m8g.12xlarge" | "ml.m8g.16xlarge" | "ml.m8g.24xlarge" | "ml.m8g.48xlarge" | "ml.c6in.large" | "ml.c6in.xlarge" | "ml.c6in.2xlarge" | "ml.c6in.4xlarge" | "ml.c6in.8xlarge" | "ml.c6in.12xlarge" | "ml.c6in.16xlarge" | "ml.c6in.24xlarge" | "ml.c6in.32xlarge" | "ml.p6-b200.48xlarge" | "ml.p6-b300.48xlarge" | "ml.p6e-gb200.36xlarge" | "ml.p5.4xlarge";
  readonly ModelName?: string;
  readonly Container?: InferenceComponentContainerSpecificationInput;
  readonly StartupParameters?: InferenceComponentStartupParametersInput;
  readonly ComputeResourceRequirements?: InferenceComponentComputeResourceRequirementsInput;
  readonly BaseInferenceComponentName?: string;
  readonly DataCacheConfig?: InferenceComponentDataCacheConfigInput;
  readonly SchedulingConfig?: InferenceComponentSchedulingConfigInput;
}

interface InferenceComponentStartupParametersInput {
  readonly ModelDataDownloadTimeoutInSeconds?: number;
  readonly ContainerStartupHealthCheckTimeoutInSeconds?: number;
}

interface InferenceExecutionConfigInput {
  readonly Mode: "Serial" | "Direct";
}

interface InferenceHubAccessConfigInput {
  readonly HubContentArn: string;
}

interface InstancePoolInput {
  readonly InstanceType: "ml.t2.medium" | "ml.t2.large" | "ml.t2.xlarge" | "ml.t2.2xlarge" | "ml.m4.xlarge" | "ml.m4.2xlarge" | "ml.m4.4xlarge" | "ml.m4.10xlarge" | "ml.m4.16xlarge" | "ml.m5.large" | "ml.m5.xlarge" | "ml.m5.2xlarge" | "ml.m5.4xlarge" | "ml.m5.12xlarge" | "ml.m5.24xlarge" | "ml.m5d.large" | "ml.m5d.xlarge" | "ml.m5d.2xlarge" | "ml.m5d.4xlarge" | "ml.m5d.12xlarge" | "ml.m5d.24xlarge" | "ml.c4.large" | "ml.c4.xlarge" | "ml.c4.2xlarge" | "ml.c4.4xlarge" | "ml.c4.8xlarge" | "ml.p2.xlarge" | "ml.p2.8xlarge" | "ml.p2.16xlarge" | "ml.p3.2xlarge" | "ml.p3.8xlarge" | "ml.p3.16xlarge" | "ml.c5.large" | "ml.c5.xlarge" | "ml.c5.2xlarge" | "ml.c5.4xlarge" | "ml.c5.9xlarge" | "ml.c5.18xlarge" | "ml.c5d.large" | "ml.c5d.xlarge" | "ml.c5d.2xlarge" | "ml.c5d.4xlarge" | "ml.c5d.9xlarge" | "ml.c5d.18xlarge" | "ml.g4dn.xlarge" | "ml.g4dn.2xlarge" | "ml.g4dn.4xlarge" | "ml.g4dn.8xlarge" | "ml.g4dn.12xlarge" | "ml.g4dn.16xlarge" | "ml.r5.large" | "ml.r5.xlarge" | "ml.r5.2xlarge" | "ml.r5.4xlarge" | "ml.r5.12xlarge" | "ml.r5.24xlarge" | "ml.r5d.large" | "ml.r5d.xlarge" | "ml.r5d.2xlarge" | "ml.r5d.4xlarge" | "ml.r5d.12xlarge" | "ml.r5d.24xlarge" | "ml.inf1.xlarge" | "ml.inf1.2xlarge" | "ml.inf1.6xlarge" | "ml.inf1.24xlarge" | "ml.dl1.24xlarge" | "ml.c6i.large" | "ml.c6i.xlarge" | "ml.c6i.2xlarge" | "ml.c6i.4xlarge" | "ml.c6i.8xlarge" | "ml.c6i.12xlarge" | "ml.c6i.16xlarge" | "ml.c6i.24xlarge" | "ml.c6i.32xlarge" | "ml.m6i.large" | "ml.m6i.xlarge" | "ml.m6i.2xlarge" | "ml.m6i.4xlarge" | "ml.m6i.8xlarge" | "ml.m6i.12xlarge" | "ml.m6i.16xlarge" | "ml.m6i.24xlarge" | "ml.m6i.32xlarge" | "ml.r6i.large" | "ml.r6i.xlarge" | "ml.r6i.2xlarge" | "ml.r6i.4xlarge" | "ml.r6i.8xlarge" | "ml.r6i.12xlarge" | "ml.r6i.16xlarge" | "ml.r6i.24xlarge" | "ml.r6i.32xlarge" | "ml.g5.xlarge" | "ml.g5.2xlarge" | "ml.g5.4xlarge" | "ml.g5.8xlarge" | "ml.g5.12xlarge" | "ml.g5.16xlarge" | "ml.g5.24xlarge" | "ml.g5.48xlarge" | "ml.g6.xlarge" | "ml.g6.2xlarge" | "ml.g6.4xlarge" | "ml.g6.8xlarge" | "ml.g6.12xlarge" | "ml.g6.16xlarge" | "ml.g6.24xlarge" | "ml.g6.48xlarge" | "ml.r8g.medium" | "ml.r8g.large" | "ml.r8g.xlarge" | "ml.r8g.2xlarge" | "ml.r8g.4xlarge" | "ml.r8g.8xlarge" | "ml.r8g.12xlarge" | "ml.r8g.16xlarge" | "ml.r8g.24xlarge" | "ml.r8g.48xlarge" | "ml.g6e.xlarge" | "ml.g6e.2xlarge" | "ml.g6e.4xlarge" | "ml.g6e.8xlarge" | "ml.g6e.12xlarge" | "ml.g6e.16xlarge" | "ml.g6e.24xlarge" | "ml.g6e.48xlarge" | "ml.g7e.2xlarge" | "ml.g7e.4xlarge" | "ml.g7e.8xlarge" | "ml.g7e.12xlarge" | "ml.g7e.24xlarge" | "ml.g7e.48xlarge" | "ml.g7.2xlarge" | "ml.g7.4xlarge" | "ml.g7.8xlarge" | "ml.g7.12xlarge" | "ml.g7.24xlarge" | "ml.g7.48xlarge" | "ml.p4d.24xlarge" | "ml.c7g.large" | "ml.c7g.xlarge" | "ml.c7g.2xlarge" | "ml.c7g.4xlarge" | "ml.c7g.8xlarge" | "ml.c7g.12xlarge" | "ml.c7g.16xlarge" | "ml.m6g.large" | "ml.m6g.xlarge" | "ml.m6g.2xlarge" | "ml.m6g.4xlarge" | "ml.m6g.8xlarge" | "ml.m6g.12xlarge" | "ml.m6g.16xlarge" | "ml.m6gd.large" | "ml.m6gd.xlarge" | "ml.m6gd.2xlarge" | "ml.m6gd.4xlarge" | "ml.m6gd.8xlarge" | "ml.m6gd.12xlarge" | "ml.m6gd.16xlarge" | "ml.c6g.large" | "ml.c6g.xlarge" | "ml.c6g.2xlarge" | "ml.c6g.4xlarge" | "ml.c6g.8xlarge" | "ml.c6g.12xlarge" | "ml.c6g.16xlarge" | "ml.c6gd.large" | "ml.c6gd.xlarge" | "ml.c6gd.2xlarge" | "ml.c6gd.4xlarge" | "ml.c6gd.8xlarge" | "ml.c6gd.12xlarge" | "ml.c6gd.16xlarge" | "ml.c6gn.large" | "ml.c6gn.xlarge" | "ml.c6gn.2xlarge" | "ml.c6gn.4xlarge" | "ml.c6gn.8xlarge" | "ml.c6gn.12xlarge" | "ml.c6gn.16xlarge" | "ml.r6g.large" | "ml.r6g.xlarge" | "ml.r6g.2xlarge" | "ml.r6g.4xlarge" | "ml.r6g.8xlarge" | "ml.r6g.12xlarge" | "ml.r6g.16xlarge" | "ml.r6gd.large" | "ml.r6gd.xlarge" | "ml.r6gd.2xlarge" | "ml.r6gd.4xlarge" | "ml.r6gd.8xlarge" | "ml.r6gd.12xlarge" | "ml.r6gd.16xlarge" | "ml.p4de.24xlarge" | "ml.trn1.2xlarge" | "ml.trn1.32xlarge" | "ml.trn1n.32xlarge" | "ml.trn2.48xlarge" | "ml.inf2.xlarge" | "ml.inf2.8xlarge" | "ml.inf2.24xlarge" | "ml.inf2.48xlarge" | "ml.p5.48xlarge" | "ml.p5e.48xlarge" | "ml.p5en.48xlarge" | "ml.m7i.large" | "ml.m7i.xlarge" | "ml.m7i.2xlarge" | "ml.m7i.4xlarge" | "ml.m7i.8xlarge" | "ml.m7i.12xlarge" | "ml.m7i.16xlarge" | "ml.m7i.24xlarge" | "ml.m7i.48xlarge" | "ml.c7i.large" | "ml.c7i.xlarge" | "ml.c7i.2xlarge" | "ml.c7i.4xlarge" | "ml.c7i.8xlarge" | "ml.c7i.12xlarge" | "ml.c7i.16xlarge" | "ml.c7i.24xlarge" | "ml.c7i.48xlarge" | "ml.r7i.large" | "ml.r7i.xlarge" | "ml.r7i.2xlarge" | "ml.r7i.4xlarge" | "ml.r7i.8xlarge" | "ml.r7i.12xlarge" | "ml.r7i.16xlarge" | "ml.r7i.24xlarge" | "ml.r7i.48xlarge" | "ml.c8g.medium" | "ml.c8g.large" | "ml.c8g.xlarge" | "ml.c8g.2xlarge" | "ml.c8g.4xlarge" | "ml.c8g.8xlarge" | "ml.c8g.12xlarge" | "ml.c8g.16xlarge" | "ml.c8g.24xlarge" | "ml.c8g.48xlarge" | "ml.r7gd.medium" | "ml.r7gd.large" | "ml.r7gd.xlarge" | "ml.r7gd.2xlarge" | "ml.r7gd.4xlarge" | "ml.r7gd.8xlarge" | "ml.r7gd.12xlarge" | "ml.r7gd.16xlarge" | "ml.m8g.medium" | "ml.m8g.large" | "ml.m8g.xlarge" | "ml.m8g.2xlarge" | "ml.m8g.4xlarge" | "ml.m8g.8xlarge" | "ml.m8g.12xlarge" | "ml.m8g.16xlarge" | "ml.m8g.24xlarge" | "ml.m8g.48xlarge" | "ml.c6in.large" | "ml.c6in.xlarge" | "ml.c6in.2xlarge" | "ml.c6in.4xlarge" | "ml.c6in.8xlarge" | "ml.c6in.12xlarge" | "ml.c6in.16xlarge" | "ml.c6in.24xlarge" | "ml.c6in.32xlarge" | "ml.p6-b200.48xlarge" | "ml.p6-b300.48xlarge" | "ml.p6e-gb200.36xlarge" | "ml.p5.4xlarge";
  readonly ModelNameOverride?: string;
  readonly Priority: number;
}

interface ListEndpointConfigsInputInput {
  readonly SortBy?: "Name" | "CreationTime";
  readonly SortOrder?: "Ascending" | "Descending";
  readonly NextToken?: string;
  readonly MaxResults?: number;
  readonly NameContains?: string;
  readonly CreationTimeBefore?: Date;
  readonly CreationTimeAfter?: Date;
}

interface ListEndpointsInputInput {
  readonly SortBy?: "Name" | "CreationTime" | "Status";
  readonly SortOrder?: "Ascending" | "Descending";
  readonly NextToken?: string;
  readonly MaxResults?: number;
  readonly NameContains?: string;
  readonly CreationTimeBefore?: Date;
  readonly CreationTimeAfter?: Date;
  readonly LastModifiedTimeBefore?: Date;
  readonly LastModifiedTimeAfter?: Date;
  readonly StatusEquals?: "OutOfService" | "Creating" | "Updating" | "SystemUpdating" | "RollingBack" | "InService" | "Deleting" | "Failed" | "UpdateRollbackFailed";
}

interface ListInferenceComponentsInputInput {
  readonly SortBy?: "Name" | "CreationTime" | "Status";
  readonly SortOrder?: "Ascending" | "Descending";
  readonly NextToken?: string;
  readonly MaxResults?: number;
  readonly NameContains?: string;
  readonly CreationTimeBefore?: Date;
  readonly CreationTimeAfter?: Date;
  readonly LastModifiedTimeBefore?: Date;
  readonly LastModifiedTimeAfter?: Date;
  readonly StatusEquals?: "InService" | "Creating" | "Updating" | "Failed" | "Deleting";
  readonly EndpointNameEquals?: string;
  readonly VariantNameEquals?: string;
}

interface ListModelsInputInput {
  readonly SortBy?: "Name" | "CreationTime";
  readonly SortOrder?: "Ascending" | "Descending";
  readonly NextToken?: string;
  readonly MaxResults?: number;
  readonly NameContains?: string;
  readonly CreationTimeBefore?: Date;
  readonly CreationTimeAfter?: Date;
}

interface ListTagsInputInput {
  readonly ResourceArn: string;
  readonly NextToken?: string;
  readonly MaxResults?: number;
}

interface ListTransformJobsRequestInput {
  readonly CreationTimeAfter?: Date;
  readonly CreationTimeBefore?: Date;
  readonly LastModifiedTimeAfter?: Date;
  readonly LastModifiedTimeBefore?: Date;
  readonly NameContains?: string;
  readonly StatusEquals?: "InProgress" | "Completed" | "Failed" | "Stopping" | "Stopped";
  readonly SortBy?: "Name" | "CreationTime" | "Status";
  readonly SortOrder?: "Ascending" | "Descending";
  readonly NextToken?: string;
  readonly MaxResults?: number;
}

interface MetricsConfigInput {
  readonly EnableEnhancedMetrics?: boolean;
  readonly EnableDetailedObservability?: boolean;
  readonly MetricPublishFrequencyInSeconds?: number;
}

interface MetricsEndpointInput {
  readonly MetricsEndpointPath: string;
  readonly MetricPublishFrequencyInSeconds?: number;
}

interface ModelAccessConfigInput {
  readonly AcceptEula: boolean;
}

interface ModelClientConfigInput {
  readonly InvocationsTimeoutInSeconds?: number;
  readonly InvocationsMaxRetries?: number;
}

interface ModelDataSourceInput {
  readonly S3DataSource?: S3ModelDataSourceInput;
}

interface MultiModelConfigInput {
  readonly ModelCacheSetting?: "Enabled" | "Disabled";
}

interface PrefixAwareRoutingConfigInput {
  readonly PrefixLength?: number;
  readonly ConcurrencyThreshold?: number;
}

interface ProductionVariantInput {
  readonly VariantName: string;
  readonly ModelName?: string;
  readonly InitialInstanceCount?: number;
  readonly InstanceType?: "ml.t2.medium" | "ml.t2.large" | "ml.t2.xlarge" | "ml.t2.2xlarge" | "ml.m4.xlarge" | "ml.m4.2xlarge" | "ml.m4.4xlarge" | "ml.m4.10xlarge" | "ml.m4.16xlarge" | "ml.m5.large" | "ml.m5.xlarge" | "ml.m5.2xlarge" | "ml.m5.4xlarge" | "ml.m5.12xlarge" | "ml.m5.24xlarge" | "ml.m5d.large" | "ml.m5d.xlarge" | "ml.m5d.2xlarge" | "ml.m5d.4xlarge" | "ml.m5d.12xlarge" | "ml.m5d.24xlarge" | "ml.c4.large" | "ml.c4.xlarge" | "ml.c4.2xlarge" | "ml.c4.4xlarge" | "ml.c4.8xlarge" | "ml.p2.xlarge" | "ml.p2.8xlarge" | "ml.p2.16xlarge" | "ml.p3.2xlarge" | "ml.p3.8xlarge" | "ml.p3.16xlarge" | "ml.c5.large" | "ml.c5.xlarge" | "ml.c5.2xlarge" | "ml.c5.4xlarge" | "ml.c5.9xlarge" | "ml.c5.18xlarge" | "ml.c5d.large" | "ml.c5d.xlarge" | "ml.c5d.2xlarge" | "ml.c5d.4xlarge" | "ml.c5d.9xlarge" | "ml.c5d.18xlarge" | "ml.g4dn.xlarge" | "ml.g4dn.2xlarge" | "ml.g4dn.4xlarge" | "ml.g4dn.8xlarge" | "ml.g4dn.12xlarge" | "ml.g4dn.16xlarge" | "ml.r5.large" | "ml.r5.xlarge" | "ml.r5.2xlarge" | "ml.r5.4xlarge" | "ml.r5.12xlarge" | "ml.r5.24xlarge" | "ml.r5d.large" | "ml.r5d.xlarge" | "ml.r5d.2xlarge" | "ml.r5d.4xlarge" | "ml.r5d.12xlarge" | "ml.r5d.24xlarge" | "ml.inf1.xlarge" | "ml.inf1.2xlarge" | "ml.inf1.6xlarge" | "ml.inf1.24xlarge" | "ml.dl1.24xlarge" | "ml.c6i.large" | "ml.c6i.xlarge" | "ml.c6i.2xlarge" | "ml.c6i.4xlarge" | "ml.c6i.8xlarge" | "ml.c6i.12xlarge" | "ml.c6i.16xlarge" | "ml.c6i.24xlarge" | "ml.c6i.32xlarge" | "ml.m6i.large" | "ml.m6i.xlarge" | "ml.m6i.2xlarge" | "ml.m6i.4xlarge" | "ml.m6i.8xlarge" | "ml.m6i.12xlarge" | "ml.m6i.16xlarge" | "ml.m6i.24xlarge" | "ml.m6i.32xlarge" | "ml.r6i.large" | "ml.r6i.xlarge" | "ml.r6i.2xlarge" | "ml.r6i.4xlarge" | "ml.r6i.8xlarge" | "ml.r6i.12xlarge" | "ml.r6i.16xlarge" | "ml.r6i.24xlarge" | "ml.r6i.32xlarge" | "ml.g5.xlarge" | "ml.g5.2xlarge" | "ml.g5.4xlarge" | "ml.g5.8xlarge" | "ml.g5.12xlarge" | "ml.g5.16xlarge" | "ml.g5.24xlarge" | "ml.g5.48xlarge" | "ml.g6.xlarge" | "ml.g6.2xlarge" | "ml.g6.4xlarge" | "ml.g6.8xlarge" | "ml.g6.12xlarge" | "ml.g6.16xlarge" | "ml.g6.24xlarge" | "ml.g6.48xlarge" | "ml.r8g.medium" | "ml.r8g.large" | "ml.r8g.xlarge" | "ml.r8g.2xlarge" | "ml.r8g.4xlarge" | "ml.r8g.8xlarge" | "ml.r8g.12xlarge" | "ml.r8g.16xlarge" | "ml.r8g.24xlarge" | "ml.r8g.48xlarge" | "ml.g6e.xlarge" | "ml.g6e.2xlarge" | "ml.g6e.4xlarge" | "ml.g6e.8xlarge" | "ml.g6e.12xlarge" | "ml.g6e.16xlarge" | "ml.g6e.24xlarge" | "ml.g6e.48xlarge" | "ml.g7e.2xlarge" | "ml.g7e.4xlarge" | "ml.g7e.8xlarge" | "ml.g7e.12xlarge" | "ml.g7e.24xlarge" | "ml.g7e.48xlarge" | "ml.g7.2xlarge" | "ml.g7.4xlarge" | "ml.g7.8xlarge" | "ml.g7.12xlarge" | "ml.g7.24xlarge" | "ml.g7.48xlarge" | "ml.p4d.24xlarge" | "ml.c7g.large" | "ml.c7g.xlarge" | "ml.c7g.2xlarge" | "ml.c7g.4xlarge" | "ml.c7g.8xlarge" | "ml.c7g.12xlarge" | "ml.c7g.16xlarge" | "ml.m6g.large" | "ml.m6g.xlarge" | "ml.m6g.2xlarge" | "ml.m6g.4xlarge" | "ml.m6g.8xlarge" | "ml.m6g.12xlarge" | "ml.m6g.16xlarge" | "ml.m6gd.large" | "ml.m6gd.xlarge" | "ml.m6gd.2xlarge" | "ml.m6gd.4xlarge" | "ml.m6gd.8xlarge" | "ml.m6gd.12xlarge" | "ml.m6gd.16xlarge" | "ml.c6g.large" | "ml.c6g.xlarge" | "ml.c6g.2xlarge" | "ml.c6g.4xlarge" | "ml.c6g.8xlarge" | "ml.c6g.12xlarge" | "ml.c6g.16xlarge" | "ml.c6gd.large" | "ml.c6gd.xlarge" | "ml.c6gd.2xlarge" | "ml.c6gd.4xlarge" | "ml.c6gd.8xlarge" | "ml.c6gd.12xlarge" | "ml.c6gd.16xlarge" | "ml.c6gn.large" | "ml.c6gn.xlarge" | "ml.c6gn.2xlarge" | "ml.c6gn.4xlarge" | "ml.c6gn.8xlarge" | "ml.c6gn.12xlarge" | "ml.c6gn.16xlarge" | "ml.r6g.large" | "ml.r6g.xlarge" | "ml.r6g.2xlarge" | "ml.r6g.4xlarge" | "ml.r6g.8xlarge" | "ml.r6g.12xlarge" | "ml.r6g.16xlarge" | "ml.r6gd.large" | "ml.r6gd.xlarge" | "ml.r6gd.2xlarge" | "ml.r6gd.4xlarge" | "ml.r6gd.8xlarge" | "ml.r6gd.12xlarge" | "ml.r6gd.16xlarge" | "ml.p4de.24xlarge" | "ml.trn1.2xlarge" | "ml.trn1.32xlarge" | "ml.trn1n.32xlarge" | "ml.trn2.48xlarge" | "ml.inf2.xlarge" | "ml.inf2.8xlarge" | "ml.inf2.24xlarge" | "ml.inf2.48xlarge" | "ml.p5.48xlarge" | "ml.p5e.48xlarge" | "ml.p5en.48xlarge" | "ml.m7i.large" | "ml.m7i.xlarge" | "ml.m7i.2xlarge" | "ml.m7i.4xlarge" | "ml.m7i.8xlarge" | "ml.m7i.12xlarge" | "ml.m7i.16xlarge" | "ml.m7i.24xlarge" | "ml.m7i.48xlarge" | "ml.c7i.large" | "ml.c7i.xlarge" | "ml.c7i.2xlarge" | "ml.c7i.4xlarge" | "ml.c7i.8xlarge" | "ml.c7i.12xlarge" | "ml.c7i.16xlarge" | "ml.c7i.24xlarge" | "ml.c7i.48xlarge" | "ml.r7i.large" | "ml.r7i.xlarge" | "ml.r7i.2xlarge" | "ml.r7i.4xlarge" | "ml.r7i.8xlarge" | "ml.r7i.12xlarge" | "ml.r7i.16xlarge" | "ml.r7i.24xlarge" | "ml.r7i.48xlarge" | "ml.c8g.medium" | "ml.c8g.large" | "ml.c8g.xlarge" | "ml.c8g.2xlarge" | "ml.c8g.4xlarge" | "ml.c8g.8xlarge" | "ml.c8g.12xlarge" | "ml.c8g.16xlarge" | "ml.c8g.24xlarge" | "ml.c8g.48xlarge" | "ml.r7gd.medium" | "ml.r7gd.large" | "ml.r7gd.xlarge" | "ml.r7gd.2xlarge" | "ml.r7gd.4xlarge" | "ml.r7gd.8xlarge" | "ml.r7gd.12xlarge" | "ml.r7gd.16xlarge" | "ml.m8g.medium" | "ml.m8g.large" | "ml.m8g.xlarge" | "ml.m8g.2xlarge" | "ml.m8g.4xlarge" | "ml.m8g.8xlarge" | "ml.m8g.12xlarge" | "ml.m8g.16xlarge" | "ml.m8g.24xlarge" | "ml.m8g.48xlarge" | "ml.c6in.large" | "ml.c6in.xlarge" | "ml.c6in.2xlarge" | "ml.c6in.4xlarge" | "ml.c6in.8xlarge" | "ml.c6in.12xlarge" | "ml.c6in.16xlarge" | "ml.c6in.24xlarge" | "ml.c6in.32xlarge" | "ml.p6-b200.48xlarge" | "ml.p6-b300.48xlarge" | "ml.p6e-gb200.36xlarge" | "ml.p5.4xlarge";
  readonly InstancePools?: readonly InstancePoolInput[];
  readonly VariantInstanceProvisionTimeoutInSeconds?: number;
  readonly InitialVariantWeight?: number;
  readonly AcceleratorType?: "ml.eia1.medium" | "ml.eia1.large" | "ml.eia1.xlarge" | "ml.eia2.medium" | "ml.eia2.large" | "ml.eia2.xlarge";
  readonly CoreDumpConfig?: ProductionVariantCoreDumpConfigInput;
  readonly ServerlessConfig?: ProductionVariantServerlessConfigInput;
  readonly VolumeSizeInGB?: number;
  readonly ModelDataDownloadTimeoutInSeconds?: number;
  readonly ContainerStartupHealthCheckTimeoutInSeconds?: number;
  readonly EnableSSMAccess?: boolean;
  readonly ManagedInstanceScaling?: ProductionVariantManagedInstanceScalingInput;
  readonly RoutingConfig?: ProductionVariantRoutingConfigInput;
  readonly InferenceAmiVersion?: "al2-ami-sagemaker-inference-gpu-2" | "al2-ami-sagemaker-inference-gpu-2-1" | "al2-ami-sagemaker-inference-gpu-3-1" | "al2-ami-sagemaker-inference-neuron-2" | "al2023-ami-sagemaker-inference-gpu-4-1";
  readonly CapacityReservationConfig?: ProductionVariantCapacityReservationConfigInput;
  readonly AcceleratorPartitionLayouts?: readonly AcceleratorPartitionLayoutInput[];
}

interface ProductionVariantCapacityReservationConfigInput {
  readonly CapacityReservationPreference?: "capacity-reservations-only";
  readonly MlReservationArn?: string;
}

interface ProductionVariantCoreDumpConfigInput {
  readonly DestinationS3Uri: string;
  readonly KmsKeyId?: string;
}

interface ProductionVariantManagedInstanceScalingInput {
  readonly Status?: "ENABLED" | "DISABLED";
  readonly MinInstanceCount?: number;
  readonly MaxInstanceCount?: number;
  readonly ScaleInPolicy?: ProductionVariantManagedInstanceScalingScaleInPolicyInput;
}

interface ProductionVariantManagedInstanceScalingScaleInPolicyInput {
  readonly Strategy: "IDLE_RELEASE" | "CONSOLIDATION";
  readonly MaximumStepSize?: number;
  readonly CooldownInMinutes?: number;
}

interface ProductionVariantRoutingConfigInput {
  readonly RoutingStrategy: "LEAST_OUTSTANDING_REQUESTS" | "RANDOM" | "PREFIX_AWARE" | "KV_AWARE";
  readonly PrefixAwareRoutingConfig?: PrefixAwareRoutingConfigInput;
}

interface ProductionVariantServerlessConfigInput {
  readonly MemorySizeInMB: number;
  readonly MaxConcurrency: number;
  readonly ProvisionedConcurrency?: number;
}

interface ProductionVariantServerlessUpdateConfigInput {
  readonly MaxConcurrency?: number;
  readonly ProvisionedConcurrency?: number;
}

interface RepositoryAuthConfigInput {
  readonly RepositoryCredentialsProviderArn: string;
}

interface RollingUpdatePolicyInput {
  readonly MaximumBatchSize: CapacitySizeInput;
  readonly WaitIntervalInSeconds: number;
  readonly MaximumExecutionTimeoutInSeconds?: number;
  readonly RollbackMaximumBatchSize?: CapacitySizeInput;
}

interface S3ModelDataSourceInput {
  readonly S3Uri: string;
  readonly S3DataType: "S3Prefix" | "S3Object";
  readonly CompressionType: "None" | "Gzip";
  readonly ModelAccessConfig?: ModelAccessConfigInput;
  readonly HubAccessConfig?: InferenceHubAccessConfigInput;
  readonly ManifestS3Uri?: string;
  readonly ETag?: string;
  readonly ManifestEtag?: string;
}

interface StopTransformJobRequestInput {
  readonly TransformJobName: string;
}

interface TagInput {
  readonly Key: string;
  readonly Value: string;
}

interface TrafficRoutingConfigInput {
  readonly Type: "ALL_AT_ONCE" | "CANARY" | "LINEAR";
  readonly WaitIntervalInSeconds: number;
  readonly CanarySize?: CapacitySizeInput;
  readonly LinearStepSize?: CapacitySizeInput;
}

interface TransformDataSourceInput {
  readonly S3DataSource: TransformS3DataSourceInput;
}

interface TransformInputInput {
  readonly DataSource: TransformDataSourceInput;
  readonly ContentType?: string;
  readonly CompressionType?: "None" | "Gzip";
  readonly SplitType?: "None" | "Line" | "RecordIO" | "TFRecord";
}

interface TransformOutputInput {
  readonly S3OutputPath: string;
  readonly Accept?: string;
  readonly AssembleWith?: "None" | "Line";
  readonly KmsKeyId?: string;
}

interface TransformResourcesInput {
  readonly InstanceType: "ml.m4.xlarge" | "ml.m4.2xlarge" | "ml.m4.4xlarge" | "ml.m4.10xlarge" | "ml.m4.16xlarge" | "ml.c4.xlarge" | "ml.c4.2xlarge" | "ml.c4.4xlarge" | "ml.c4.8xlarge" | "ml.p2.xlarge" | "ml.p2.8xlarge" | "ml.p2.16xlarge" | "ml.p3.2xlarge" | "ml.p3.8xlarge" | "ml.p3.16xlarge" | "ml.c5.xlarge" | "ml.c5.2xlarge" | "ml.c5.4xlarge" | "ml.c5.9xlarge" | "ml.c5.18xlarge" | "ml.m5.large" | "ml.m5.xlarge" | "ml.m5.2xlarge" | "ml.m5.4xlarge" | "ml.m5.12xlarge" | "ml.m5.24xlarge" | "ml.m6i.large" | "ml.m6i.xlarge" | "ml.m6i.2xlarge" | "ml.m6i.4xlarge" | "ml.m6i.8xlarge" | "ml.m6i.12xlarge" | "ml.m6i.16xlarge" | "ml.m6i.24xlarge" | "ml.m6i.32xlarge" | "ml.c6i.large" | "ml.c6i.xlarge" | "ml.c6i.2xlarge" | "ml.c6i.4xlarge" | "ml.c6i.8xlarge" | "ml.c6i.12xlarge" | "ml.c6i.16xlarge" | "ml.c6i.24xlarge" | "ml.c6i.32xlarge" | "ml.r6i.large" | "ml.r6i.xlarge" | "ml.r6i.2xlarge" | "ml.r6i.4xlarge" | "ml.r6i.8xlarge" | "ml.r6i.12xlarge" | "ml.r6i.16xlarge" | "ml.r6i.24xlarge" | "ml.r6i.32xlarge" | "ml.m7i.large" | "ml.m7i.xlarge" | "ml.m7i.2xlarge" | "ml.m7i.4xlarge" | "ml.m7i.8xlarge" | "ml.m7i.12xlarge" | "ml.m7i.16xlarge" | "ml.m7i.24xlarge" | "ml.m7i.48xlarge" | "ml.c7i.large" | "ml.c7i.xlarge" | "ml.c7i.2xlarge" | "ml.c7i.4xlarge" | "ml.c7i.8xlarge" | "ml.c7i.12xlarge" | "ml.c7i.16xlarge" | "ml.c7i.24xlarge" | "ml.c7i.48xlarge" | "ml.r7i.large" | "ml.r7i.xlarge" | "ml.r7i.2xlarge" | "ml.r7i.4xlarge" | "ml.r7i.8xlarge" | "ml.r7i.12xlarge" | "ml.r7i.16xlarge" | "ml.r7i.24xlarge" | "ml.r7i.48xlarge" | "ml.g4dn.xlarge" | "ml.g4dn.2xlarge" | "ml.g4dn.4xlarge" | "ml.g4dn.8xlarge" | "ml.g4dn.12xlarge" | "ml.g4dn.16xlarge" | "ml.g5.xlarge" | "ml.g5.2xlarge" | "ml.g5.4xlarge" | "ml.g5.8xlarge" | "ml.g5.12xlarge" | "ml.g5.16xlarge" | "ml.g5.24xlarge" | "ml.g5.48xlarge" | "ml.trn1.2xlarge" | "ml.trn1.32xlarge" | "ml.inf2.xlarge" | "ml.inf2.8xlarge" | "ml.inf2.24xlarge" | "ml.inf2.48xlarge" | "ml.g6.xlarge" | "ml.g6.2xlarge" | "ml.g6.4xlarge" | "ml.g6.8xlarge" | "ml.g6.12xlarge" | "ml.g6.16xlarge" | "ml.g6.24xlarge" | "ml.g6.48xlarge" | "ml.g6e.xlarge" | "ml.g6e.2xlarge" | "ml.g6e.4xlarge" | "ml.g6e.8xlarge" | "ml.g6e.12xlarge" | "ml.g6e.16xlarge" | "ml.g6e.24xlarge" | "ml.g6e.48xlarge";
  readonly InstanceCount: number;
  readonly VolumeKmsKeyId?: string;
  readonly TransformAmiVersion?: string;
}

interface TransformS3DataSourceInput {
  readonly S3DataType: "ManifestFile" | "S3Prefix" | "AugmentedManifestFile" | "Converse";
  readonly S3Uri: string;
}

interface UpdateEndpointInputInput {
  readonly EndpointName: string;
  readonly EndpointConfigName: string;
  readonly RetainAllVariantProperties?: boolean;
  readonly ExcludeRetainedVariantProperties?: readonly VariantPropertyInput[];
  readonly DeploymentConfig?: DeploymentConfigInput;
  readonly RetainDeploymentConfig?: boolean;
}

interface UpdateEndpointWeightsAndCapacitiesInputInput {
  readonly EndpointName: string;
  readonly DesiredWeightsAndCapacities: readonly DesiredWeightAndCapacityInput[];
}

interface UpdateInferenceComponentInputInput {
  readonly InferenceComponentName: string;
  readonly Specification?: InferenceComponentSpecificationInput;
  readonly Specifications?: readonly InferenceComponentSpecificationInput[];
  readonly RuntimeConfig?: InferenceComponentRuntimeConfigInput;
  readonly DeploymentConfig?: InferenceComponentDeploymentConfigInput;
}

interface UpdateInferenceComponentRuntimeConfigInputInput {
  readonly InferenceComponentName: string;
  readonly DesiredRuntimeConfig: InferenceComponentRuntimeConfigInput;
}

interface VariantPropertyInput {
  readonly VariantPropertyType: "DesiredInstanceCount" | "DesiredWeight" | "DataCaptureConfig";
}

interface VpcConfigInput {
  readonly SecurityGroupIds: readonly string[];
  readonly Subnets: readonly string[];
}

interface AcceleratorPartitionLayoutOutput {
  readonly AcceleratorPartitionTypes?: readonly string[] | null | undefined;
}

interface AddTagsOutputOutput {
  readonly Tags?: readonly TagOutput[] | null | undefined;
}

interface AdditionalModelDataSourceOutput {
  readonly ChannelName: string;
  readonly S3DataSource: S3ModelDataSourceOutput;
}

interface AlarmOutput {
  readonly AlarmName?: string | null | undefined;
}

interface AsyncInferenceClientConfigOutput {
  readonly MaxConcurrentInvocationsPerInstance?: number | null | undefined;
}

interface AsyncInferenceConfigOutput {
  readonly ClientConfig?: AsyncInferenceClientConfigOutput | null | undefined;
  readonly OutputConfig: AsyncInferenceOutputConfigOutput;
}

interface AsyncInferenceNotificationConfigOutput {
  readonly SuccessTopic?: string | null | undefined;
  readonly ErrorTopic?: string | null | undefined;
  readonly IncludeInferenceResponseIn?: readonly string[] | null | undefined;
}

interface AsyncInferenceOutputConfigOutput {
  readonly KmsKeyId?: string | null | undefined;
  readonly S3OutputPath?: string | null | undefined;
  readonly NotificationConfig?: AsyncInferenceNotificationConfigOutput | null | undefined;
  readonly S3FailurePath?: string | null | undefined;
}

interface AutoRollbackConfigOutput {
  readonly Alarms?: readonly AlarmOutput[] | null | undefined;
}

interface BatchDataCaptureConfigOutput {
  readonly DestinationS3Uri: string;
  readonly KmsKeyId?: string | null | undefined;
  readonly GenerateInferenceId?: boolean | null | undefined;
}

interface BlueGreenUpdatePolicyOutput {
  readonly TrafficRoutingConfiguration: TrafficRoutingConfigOutput;
  readonly TerminationWaitInSeconds?: number | null | undefined;
  readonly MaximumExecutionTimeoutInSeconds?: number | null | undefined;
}

interface CapacitySizeOutput {
  readonly Type: string;
  readonly Value: number;
}

interface CaptureContentTypeHeaderOutput {
  readonly CsvContentTypes?: readonly string[] | null | undefined;
  readonly JsonContentTypes?: readonly string[] | null | undefined;
}

interface CaptureOptionOutput {
  readonly CaptureMode: string;
}

interface ClarifyExplainerConfigOutput {
  readonly EnableExplanations?: string | null | undefined;
  readonly InferenceConfig?: ClarifyInferenceConfigOutput | null | undefined;
  readonly ShapConfig: ClarifyShapConfigOutput;
}

interface ClarifyInferenceConfigOutput {
  readonly FeaturesAttribute?: string | null | undefined;
  readonly ContentTemplate?: string | null | undefined;
  readonly MaxRecordCount?: number | null | undefined;
  readonly MaxPayloadInMB?: number | null | undefined;
  readonly ProbabilityIndex?: number | null | undefined;
  readonly LabelIndex?: number | null | undefined;
  readonly ProbabilityAttribute?: string | null | undefined;
  readonly LabelAttribute?: string | null | undefined;
  readonly LabelHeaders?: readonly string[] | null | undefined;
  readonly FeatureHeaders?: readonly string[] | null | undefined;
  readonly FeatureTypes?: readonly string[] | null | undefined;
}

interface ClarifyShapBaselineConfigOutput {
  readonly MimeType?: string | null | undefined;
  readonly ShapBaseline?: string | null | undefined;
  readonly ShapBaselineUri?: string | null | undefined;
}

interface ClarifyShapConfigOutput {
  readonly ShapBaselineConfig: ClarifyShapBaselineConfigOutput;
  readonly NumberOfSamples?: number | null | undefined;
  readonly UseLogit?: boolean | null | undefined;
  readonly Seed?: number | null | undefined;
  readonly TextConfig?: ClarifyTextConfigOutput | null | undefined;
}

interface ClarifyTextConfigOutput {
  readonly Language: string;
  readonly Granularity: string;
}

interface ContainerDefinitionOutput {
  readonly ContainerHostname?: string | null | undefined;
  readonly Image?: string | null | undefined;
  readonly ImageConfig?: ImageConfigOutput | null | undefined;
  readonly Mode?: string | null | undefined;
  readonly ModelDataUrl?: string | null | undefined;
  readonly ModelDataSource?: ModelDataSourceOutput | null | undefined;
  readonly AdditionalModelDataSources?: readonly AdditionalModelDataSourceOutput[] | null | undefined;
  readonly Environment?: Readonly<Record<string, string>> | null | undefined;
  readonly ModelPackageName?: string | null | undefined;
  readonly InferenceSpecificationName?: string | null | undefined;
  readonly MultiModelConfig?: MultiModelConfigOutput | null | undefined;
  readonly ContainerMetricsConfig?: ContainerMetricsConfigOutput | null | undefined;
}

interface ContainerMetricsConfigOutput {
  readonly MetricsEndpoints?: readonly MetricsEndpointOutput[] | null | undefined;
}

interface CreateEndpointConfigOutputOutput {
  readonly EndpointConfigArn: string;
}

interface CreateEndpointOutputOutput {
  readonly EndpointArn: string;
}

interface CreateInferenceComponentOutputOutput {
  readonly InferenceComponentArn: string;
}

interface CreateModelOutputOutput {
  readonly ModelArn: string;
}

interface CreateTransformJobResponseOutput {
  readonly TransformJobArn: string;
}

interface CrossRegionTrafficConfigOutput {
  readonly MaxInvocationsPerSecondPerInstance: number;
  readonly MaxCrossRegionPercentPerEndpoint: number;
}

interface DataCaptureConfigOutput {
  readonly EnableCapture?: boolean | null | undefined;
  readonly InitialSamplingPercentage: number;
  readonly DestinationS3Uri: string;
  readonly KmsKeyId?: string | null | undefined;
  readonly CaptureOptions: readonly CaptureOptionOutput[];
  readonly CaptureContentTypeHeader?: CaptureContentTypeHeaderOutput | null | undefined;
}

interface DataCaptureConfigSummaryOutput {
  readonly EnableCapture: boolean;
  readonly CaptureStatus: string;
  readonly CurrentSamplingPercentage: number;
  readonly DestinationS3Uri: string;
  readonly KmsKeyId: string;
}

interface DataProcessingOutput {
  readonly InputFilter?: string | null | undefined;
  readonly OutputFilter?: string | null | undefined;
  readonly JoinSource?: string | null | undefined;
}

interface DeleteTagsOutputOutput {
}

interface DeployedImageOutput {
  readonly SpecifiedImage?: string | null | undefined;
  readonly ResolvedImage?: string | null | undefined;
  readonly ResolutionTime?: Date | null | undefined;
}

interface DeploymentConfigOutput {
  readonly BlueGreenUpdatePolicy?: BlueGreenUpdatePolicyOutput | null | undefined;
  readonly RollingUpdatePolicy?: RollingUpdatePolicyOutput | null | undefined;
  readonly AutoRollbackConfiguration?: AutoRollbackConfigOutput | null | undefined;
}

interface DeploymentRecommendationOutput {
  readonly RecommendationStatus: string;
  readonly RealTimeInferenceRecommendations?: readonly RealTimeInferenceRecommendationOutput[] | null | undefined;
}

interface DescribeEndpointConfigOutputOutput {
  readonly EndpointConfigName: string;
  readonly EndpointConfigArn: string;
  readonly ProductionVariants: readonly ProductionVariantOutput[];
  readonly DataCaptureConfig?: DataCaptureConfigOutput | null | undefined;
  readonly KmsKeyId?: string | null | undefined;
  readonly CreationTime: Date;
  readonly AsyncInferenceConfig?: AsyncInferenceConfigOutput | null | undefined;
  readonly ExplainerConfig?: ExplainerConfigOutput | null | undefined;
  readonly ShadowProductionVariants?: readonly ProductionVariantOutput[] | null | undefined;
  readonly ExecutionRoleArn?: string | null | undefined;
  readonly VpcConfig?: VpcConfigOutput | null | undefined;
  readonly EnableNetworkIsolation?: boolean | null | undefined;
  readonly MetricsConfig?: MetricsConfigOutput | null | undefined;
  readonly CrossRegionTrafficConfig?: CrossRegionTrafficConfigOutput | null | undefined;
}

interface DescribeEndpointOutputOutput {
  readonly EndpointName: string;
  readonly EndpointArn: string;
  readonly EndpointConfigName?: string | null | undefined;
  readonly ProductionVariants?: readonly ProductionVariantSummaryOutput[] | null | undefined;
  readonly DataCaptureConfig?: DataCaptureConfigSummaryOutput | null | undefined;
  readonly EndpointStatus: string;
  readonly FailureReason?: string | null | undefined;
  readonly CreationTime: Date;
  readonly LastModifiedTime: Date;
  readonly LastDeploymentConfig?: DeploymentConfigOutput | null | undefined;
  readonly AsyncInferenceConfig?: AsyncInferenceConfigOutput | null | undefined;
  readonly PendingDeploymentSummary?: PendingDeploymentSummaryOutput | null | undefined;
  readonly ExplainerConfig?: ExplainerConfigOutput | null | undefined;
  readonly ShadowProductionVariants?: readonly ProductionVariantSummaryOutput[] | null | undefined;
  readonly MetricsConfig?: MetricsConfigOutput | null | undefined;
  readonly CrossRegionTrafficConfig?: CrossRegionTrafficConfigOutput | null | undefined;
}

interface DescribeInferenceComponentOutputOutput {
  readonly InferenceComponentName: string;
  readonly InferenceComponentArn: string;
  readonly EndpointName: string;
  readonly EndpointArn: string;
  readonly VariantName?: string | null | undefined;
  readonly FailureReason?: string | null | undefined;
  readonly Specification?: InferenceComponentSpecificationSummaryOutput | null | undefined;
  readonly Specifications?: readonly InferenceComponentSpecificationSummaryOutput[] | null | undefined;
  readonly RuntimeConfig?: InferenceComponentRuntimeConfigSummaryOutput | null | undefined;
  readonly CreationTime: Date;
  readonly LastModifiedTime: Date;
  readonly InferenceComponentStatus?: string | null | undefined;
  readonly LastDeploymentConfig?: InferenceComponentDeploymentConfigOutput | null | undefined;
}

interface DescribeModelOutputOutput {
  readonly ModelName: string;
  readonly PrimaryContainer?: ContainerDefinitionOutput | null | undefined;
  readonly Containers?: readonly ContainerDefinitionOutput[] | null | undefined;
  readonly InferenceExecutionConfig?: InferenceExecutionConfigOutput | null | undefined;
  readonly ExecutionRoleArn?: string | null | undefined;
  readonly VpcConfig?: VpcConfigOutput | null | undefined;
  readonly CreationTime: Date;
  readonly ModelArn: string;
  readonly EnableNetworkIsolation?: boolean | null | undefined;
  readonly DeploymentRecommendation?: DeploymentRecommendationOutput | null | undefined;
}

interface DescribeTransformJobResponseOutput {
  readonly TransformJobName: string;
  readonly TransformJobArn: string;
  readonly TransformJobStatus: string;
  readonly FailureReason?: string | null | undefined;
  readonly ModelName: string;
  readonly MaxConcurrentTransforms?: number | null | undefined;
  readonly ModelClientConfig?: ModelClientConfigOutput | null | undefined;
  readonly MaxPayloadInMB?: number | null | undefined;
  readonly BatchStrategy?: string | null | undefined;
  readonly Environment?: Readonly<Record<string, string>> | null | undefined;
  readonly TransformInput: TransformInputOutput;
  readonly TransformOutput?: TransformOutputOutput | null | undefined;
  readonly DataCaptureConfig?: BatchDataCaptureConfigOutput | null | undefined;
  readonly TransformResources: TransformResourcesOutput;
  readonly CreationTime: Date;
  readonly TransformStartTime?: Date | null | undefined;
  readonly TransformEndTime?: Date | null | undefined;
  readonly LabelingJobArn?: string | null | undefined;
  readonly AutoMLJobArn?: string | null | undefined;
  readonly DataProcessing?: DataProcessingOutput | null | undefined;
  readonly ExperimentConfig?: ExperimentConfigOutput | null | undefined;
}

interface Ec2CapacityReservationOutput {
  readonly Ec2CapacityReservationId?: string | null | undefined;
  readonly TotalInstanceCount?: number | null | undefined;
  readonly AvailableInstanceCount?: number | null | undefined;
  readonly UsedByCurrentEndpoint?: number | null | undefined;
}

interface EndpointConfigSummaryOutput {
  readonly EndpointConfigName: string;
  readonly EndpointConfigArn: string;
  readonly CreationTime: Date;
}

interface EndpointSummaryOutput {
  readonly EndpointName: string;
  readonly EndpointArn: string;
  readonly CreationTime: Date;
  readonly LastModifiedTime: Date;
  readonly EndpointStatus: string;
}

interface ExperimentConfigOutput {
  readonly ExperimentName?: string | null | undefined;
  readonly TrialName?: string | null | undefined;
  readonly TrialComponentDisplayName?: string | null | undefined;
  readonly RunName?: string | null | undefined;
}

interface ExplainerConfigOutput {
  readonly ClarifyExplainerConfig?: ClarifyExplainerConfigOutput | null | undefined;
}

interface ImageConfigOutput {
  readonly RepositoryAccessMode: string;
  readonly RepositoryAuthConfig?: RepositoryAuthConfigOutput | null | undefined;
}

interface InferenceComponentAvailabilityZoneBalanceOutput {
  readonly EnforcementMode: string;
  readonly MaxImbalance?: number | null | undefined;
}

interface InferenceComponentCapacitySizeOutput {
  readonly Type: string;
  readonly Value: number;
}

interface InferenceComponentComputeResourceRequirementsOutput {
  readonly NumberOfCpuCoresRequired?: number | null | undefined;
  readonly NumberOfAcceleratorDevicesRequired?: number | null | undefined;
  readonly MinMemoryRequiredInMb: number;
  readonly MaxMemoryRequiredInMb?: number | null | undefined;
  readonly AcceleratorPartitionType?: string | null | undefined;
}

interface InferenceComponentContainerSpecificationSummaryOutput {
  readonly DeployedImage?: DeployedImageOutput | null | undefined;
  readonly ArtifactUrl?: string | null | undefined;
  readonly Environment?: Readonly<Record<string, string>> | null | undefined;
  readonly ContainerMetricsConfig?: ContainerMetricsConfigOutput | null | undefined;
}

interface InferenceComponentDataCacheConfigSummaryOutput {
  readonly EnableCaching: boolean;
}

interface InferenceComponentDeploymentConfigOutput {
  readonly RollingUpdatePolicy: InferenceComponentRollingUpdatePolicyOutput;
  readonly AutoRollbackConfiguration?: AutoRollbackConfigOutput | null | undefined;
}

interface InferenceComponentPlacementStatusOutput {
  readonly InstanceType: string;
  readonly CurrentCopyCount: number;
}

interface InferenceComponentRollingUpdatePolicyOutput {
  readonly MaximumBatchSize: InferenceComponentCapacitySizeOutput;
  readonly WaitIntervalInSeconds: number;
  readonly MaximumExecutionTimeoutInSeconds?: number | null | undefined;
  readonly RollbackMaximumBatchSize?: InferenceComponentCapacitySizeOutput | null | undefined;
}

interface InferenceComponentRuntimeConfigSummaryOutput {
  readonly DesiredCopyCount?: number | null | undefined;
  readonly CurrentCopyCount?: number | null | undefined;
  readonly PlacementStatus?: readonly InferenceComponentPlacementStatusOutput[] | null | undefined;
}

interface InferenceComponentSchedulingConfigOutput {
  readonly PlacementStrategy: string;
  readonly AvailabilityZoneBalance?: InferenceComponentAvailabilityZoneBalanceOutput | null | undefined;
}

interface InferenceComponentSpecificationSummaryOutput {
  readonly InstanceType?: string | null | undefined;
  readonly ModelName?: string | null | undefined;
  readonly Container?: InferenceComponentContainerSpecificationSummaryOutput | null | undefined;
  readonly StartupParameters?: InferenceComponentStartupParametersOutput | null | undefined;
  readonly ComputeResourceRequirements?: InferenceComponentComputeResourceRequirementsOutput | null | undefined;
  readonly BaseInferenceComponentName?: string | null | undefined;
  readonly DataCacheConfig?: InferenceComponentDataCacheConfigSummaryOutput | null | undefined;
  readonly SchedulingConfig?: InferenceComponentSchedulingConfigOutput | null | undefined;
}

interface InferenceComponentStartupParametersOutput {
  readonly ModelDataDownloadTimeoutInSeconds?: number | null | undefined;
  readonly ContainerStartupHealthCheckTimeoutInSeconds?: number | null | undefined;
}

interface InferenceComponentSummaryOutput {
  readonly CreationTime: Date;
  readonly InferenceComponentArn: string;
  readonly InferenceComponentName: string;
  readonly EndpointArn: string;
  readonly EndpointName: string;
  readonly VariantName: string;
  readonly InferenceComponentStatus?: string | null | undefined;
  readonly LastModifiedTime: Date;
}

interface InferenceExecutionConfigOutput {
  readonly Mode: string;
}

interface InferenceHubAccessConfigOutput {
  readonly HubContentArn: string;
}

interface InstancePoolOutput {
  readonly InstanceType: string;
  readonly ModelNameOverride?: string | null | undefined;
  readonly Priority: number;
}

interface InstancePoolSummaryOutput {
  readonly InstanceType: string;
  readonly CurrentInstanceCount: number;
}

interface ListEndpointConfigsOutputOutput {
  readonly EndpointConfigs: readonly EndpointConfigSummaryOutput[];
  readonly NextToken?: string | null | undefined;
}

interface ListEndpointsOutputOutput {
  readonly Endpoints: readonly EndpointSummaryOutput[];
  readonly NextToken?: string | null | undefined;
}

interface ListInferenceComponentsOutputOutput {
  readonly InferenceComponents: readonly InferenceComponentSummaryOutput[];
  readonly NextToken?: string | null | undefined;
}

interface ListModelsOutputOutput {
  readonly Models: readonly ModelSummaryOutput[];
  readonly NextToken?: string | null | undefined;
}

interface ListTagsOutputOutput {
  readonly Tags?: readonly TagOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface ListTransformJobsResponseOutput {
  readonly TransformJobSummaries: readonly TransformJobSummaryOutput[];
  readonly NextToken?: string | null | undefined;
}

interface MetricsConfigOutput {
  readonly EnableEnhancedMetrics?: boolean | null | undefined;
  readonly EnableDetailedObservability?: boolean | null | undefined;
  readonly MetricPublishFrequencyInSeconds?: number | null | undefined;
}

interface MetricsEndpointOutput {
  readonly MetricsEndpointPath: string;
  readonly MetricPublishFrequencyInSeconds?: number | null | undefined;
}

interface ModelAccessConfigOutput {
  readonly AcceptEula: boolean;
}

interface ModelClientConfigOutput {
  readonly InvocationsTimeoutInSeconds?: number | null | undefined;
  readonly InvocationsMaxRetries?: number | null | undefined;
}

interface ModelDataSourceOutput {
  readonly S3DataSource?: S3ModelDataSourceOutput | null | undefined;
}

interface ModelSummaryOutput {
  readonly ModelName: string;
  readonly ModelArn: string;
  readonly CreationTime: Date;
}

interface MultiModelConfigOutput {
  readonly ModelCacheSetting?: string | null | undefined;
}

interface PendingDeploymentSummaryOutput {
  readonly EndpointConfigName: string;
  readonly ProductionVariants?: readonly PendingProductionVariantSummaryOutput[] | null | undefined;
  readonly StartTime?: Date | null | undefined;
  readonly ShadowProductionVariants?: readonly PendingProductionVariantSummaryOutput[] | null | undefined;
}

interface PendingProductionVariantSummaryOutput {
  readonly VariantName: string;
  readonly DeployedImages?: readonly DeployedImageOutput[] | null | undefined;
  readonly CurrentWeight?: number | null | undefined;
  readonly DesiredWeight?: number | null | undefined;
  readonly CurrentInstanceCount?: number | null | undefined;
  readonly DesiredInstanceCount?: number | null | undefined;
  readonly InstanceType?: string | null | undefined;
  readonly InstancePools?: readonly InstancePoolSummaryOutput[] | null | undefined;
  readonly AcceleratorType?: string | null | undefined;
  readonly VariantStatus?: readonly ProductionVariantStatusOutput[] | null | undefined;
  readonly CurrentServerlessConfig?: ProductionVariantServerlessConfigOutput | null | undefined;
  readonly DesiredServerlessConfig?: ProductionVariantServerlessConfigOutput | null | undefined;
  readonly ManagedInstanceScaling?: ProductionVariantManagedInstanceScalingOutput | null | undefined;
  readonly RoutingConfig?: ProductionVariantRoutingConfigOutput | null | undefined;
  readonly AcceleratorPartitionLayouts?: readonly AcceleratorPartitionLayoutOutput[] | null | undefined;
}

interface PrefixAwareRoutingConfigOutput {
  readonly PrefixLength?: number | null | undefined;
  readonly ConcurrencyThreshold?: number | null | undefined;
}

interface ProductionVariantOutput {
  readonly VariantName: string;
  readonly ModelName?: string | null | undefined;
  readonly InitialInstanceCount?: number | null | undefined;
  readonly InstanceType?: string | null | undefined;
  readonly InstancePools?: readonly InstancePoolOutput[] | null | undefined;
  readonly VariantInstanceProvisionTimeoutInSeconds?: number | null | undefined;
  readonly InitialVariantWeight?: number | null | undefined;
  readonly AcceleratorType?: string | null | undefined;
  readonly CoreDumpConfig?: ProductionVariantCoreDumpConfigOutput | null | undefined;
  readonly ServerlessConfig?: ProductionVariantServerlessConfigOutput | null | undefined;
  readonly VolumeSizeInGB?: number | null | undefined;
  readonly ModelDataDownloadTimeoutInSeconds?: number | null | undefined;
  readonly ContainerStartupHealthCheckTimeoutInSeconds?: number | null | undefined;
  readonly EnableSSMAccess?: boolean | null | undefined;
  readonly ManagedInstanceScaling?: ProductionVariantManagedInstanceScalingOutput | null | undefined;
  readonly RoutingConfig?: ProductionVariantRoutingConfigOutput | null | undefined;
  readonly InferenceAmiVersion?: string | null | undefined;
  readonly CapacityReservationConfig?: ProductionVariantCapacityReservationConfigOutput | null | undefined;
  readonly AcceleratorPartitionLayouts?: readonly AcceleratorPartitionLayoutOutput[] | null | undefined;
}

interface ProductionVariantCapacityReservationConfigOutput {
  readonly CapacityReservationPreference?: string | null | undefined;
  readonly MlReservationArn?: string | null | undefined;
}

interface ProductionVariantCapacityReservationSummaryOutput {
  readonly MlReservationArn?: string | null | undefined;
  readonly CapacityReservationPreference?: string | null | undefined;
  readonly TotalInstanceCount?: number | null | undefined;
  readonly AvailableInstanceCount?: number | null | undefined;
  readonly UsedByCurrentEndpoint?: number | null | undefined;
  readonly Ec2CapacityReservations?: readonly Ec2CapacityReservationOutput[] | null | undefined;
}

interface ProductionVariantCoreDumpConfigOutput {
  readonly DestinationS3Uri: string;
  readonly KmsKeyId?: string | null | undefined;
}

interface ProductionVariantManagedInstanceScalingOutput {
  readonly Status?: string | null | undefined;
  readonly MinInstanceCount?: number | null | undefined;
  readonly MaxInstanceCount?: number | null | undefined;
  readonly ScaleInPolicy?: ProductionVariantManagedInstanceScalingScaleInPolicyOutput | null | undefined;
}

interface ProductionVariantManagedInstanceScalingScaleInPolicyOutput {
  readonly Strategy: string;
  readonly MaximumStepSize?: number | null | undefined;
  readonly CooldownInMinutes?: number | null | undefined;
}

interface ProductionVariantRoutingConfigOutput {
  readonly RoutingStrategy: string;
  readonly PrefixAwareRoutingConfig?: PrefixAwareRoutingConfigOutput | null | undefined;
}

interface ProductionVariantServerlessConfigOutput {
  readonly MemorySizeInMB: number;
  readonly MaxConcurrency: number;
  readonly ProvisionedConcurrency?: number | null | undefined;
}

interface ProductionVariantStatusOutput {
  readonly Status: string;
  readonly StatusMessage?: string | null | undefined;
  readonly StartTime?: Date | null | undefined;
}

interface ProductionVariantSummaryOutput {
  readonly VariantName: string;
  readonly DeployedImages?: readonly DeployedImageOutput[] | null | undefined;
  readonly CurrentWeight?: number | null | undefined;
  readonly DesiredWeight?: number | null | undefined;
  readonly CurrentInstanceCount?: number | null | undefined;
  readonly DesiredInstanceCount?: number | null | undefined;
  readonly InstancePools?: readonly InstancePoolSummaryOutput[] | null | undefined;
  readonly VariantStatus?: readonly ProductionVariantStatusOutput[] | null | undefined;
  readonly CurrentServerlessConfig?: ProductionVariantServerlessConfigOutput | null | undefined;
  readonly DesiredServerlessConfig?: ProductionVariantServerlessConfigOutput | null | undefined;
  readonly ManagedInstanceScaling?: ProductionVariantManagedInstanceScalingOutput | null | undefined;
  readonly RoutingConfig?: ProductionVariantRoutingConfigOutput | null | undefined;
  readonly CapacityReservationConfig?: ProductionVariantCapacityReservationSummaryOutput | null | undefined;
  readonly AcceleratorPartitionLayouts?: readonly AcceleratorPartitionLayoutOutput[] | null | undefined;
}

interface RealTimeInferenceRecommendationOutput {
  readonly RecommendationId: string;
  readonly InstanceType: string;
  readonly Environment?: Readonly<Record<string, string>> | null | undefined;
}

interface RepositoryAuthConfigOutput {
  readonly RepositoryCredentialsProviderArn: string;
}

interface RollingUpdatePolicyOutput {
  readonly MaximumBatchSize: CapacitySizeOutput;
  readonly WaitIntervalInSeconds: number;
  readonly MaximumExecutionTimeoutInSeconds?: number | null | undefined;
  readonly RollbackMaximumBatchSize?: CapacitySizeOutput | null | undefined;
}

interface S3ModelDataSourceOutput {
  readonly S3Uri: string;
  readonly S3DataType: string;
  readonly CompressionType: string;
  readonly ModelAccessConfig?: ModelAccessConfigOutput | null | undefined;
  readonly HubAccessConfig?: InferenceHubAccessConfigOutput | null | undefined;
  readonly ManifestS3Uri?: string | null | undefined;
  readonly ETag?: string | null | undefined;
  readonly ManifestEtag?: string | null | undefined;
}

interface TagOutput {
  readonly Key: string;
  readonly Value: string;
}

interface TrafficRoutingConfigOutput {
  readonly Type: string;
  readonly WaitIntervalInSeconds: number;
  readonly CanarySize?: CapacitySizeOutput | null | undefined;
  readonly LinearStepSize?: CapacitySizeOutput | null | undefined;
}

interface TransformDataSourceOutput {
  readonly S3DataSource: TransformS3DataSourceOutput;
}

interface TransformInputOutput {
  readonly DataSource: TransformDataSourceOutput;
  readonly ContentType?: string | null | undefined;
  readonly CompressionType?: string | null | undefined;
  readonly SplitType?: string | null | undefined;
}

interface TransformJobSummaryOutput {
  readonly TransformJobName: string;
  readonly TransformJobArn: string;
  readonly CreationTime: Date;
  readonly TransformEndTime?: Date | null | undefined;
  readonly LastModifiedTime?: Date | null | undefined;
  readonly TransformJobStatus: string;
  readonly FailureReason?: string | null | undefined;
}

interface TransformOutputOutput {
  readonly S3OutputPath: string;
  readonly Accept?: string | null | undefined;
  readonly AssembleWith?: string | null | undefined;
  readonly KmsKeyId?: string | null | undefined;
}

interface TransformResourcesOutput {
  readonly InstanceType: string;
  readonly InstanceCount: number;
  readonly VolumeKmsKeyId?: string | null | undefined;
  readonly TransformAmiVersion?: string | null | undefined;
}

interface TransformS3DataSourceOutput {
  readonly S3DataType: string;
  readonly S3Uri: string;
}

interface UpdateEndpointOutputOutput {
  readonly EndpointArn: string;
}

interface UpdateEndpointWeightsAndCapacitiesOutputOutput {
  readonly EndpointArn: string;
}

interface UpdateInferenceComponentOutputOutput {
  readonly InferenceComponentArn: string;
}

interface UpdateInferenceComponentRuntimeConfigOutputOutput {
  readonly InferenceComponentArn: string;
}

interface VpcConfigOutput {
  readonly SecurityGroupIds: readonly string[];
  readonly Subnets: readonly string[];
}
