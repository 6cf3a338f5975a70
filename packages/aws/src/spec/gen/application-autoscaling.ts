/** Written by scripts/aws-types.ts from application-autoscaling.json. Inputs are as parsed and checked against that model. */
export interface ApplicationAutoscalingOperations {
  readonly DeleteScalingPolicy: { readonly input: DeleteScalingPolicyRequestInput; readonly output: DeleteScalingPolicyResponseOutput };
  readonly DeleteScheduledAction: { readonly input: DeleteScheduledActionRequestInput; readonly output: DeleteScheduledActionResponseOutput };
  readonly DeregisterScalableTarget: { readonly input: DeregisterScalableTargetRequestInput; readonly output: DeregisterScalableTargetResponseOutput };
  readonly DescribeScalableTargets: { readonly input: DescribeScalableTargetsRequestInput; readonly output: DescribeScalableTargetsResponseOutput };
  readonly DescribeScalingActivities: { readonly input: DescribeScalingActivitiesRequestInput; readonly output: DescribeScalingActivitiesResponseOutput };
  readonly DescribeScalingPolicies: { readonly input: DescribeScalingPoliciesRequestInput; readonly output: DescribeScalingPoliciesResponseOutput };
  readonly DescribeScheduledActions: { readonly input: DescribeScheduledActionsRequestInput; readonly output: DescribeScheduledActionsResponseOutput };
  readonly ListTagsForResource: { readonly input: ListTagsForResourceRequestInput; readonly output: ListTagsForResourceResponseOutput };
  readonly PutScalingPolicy: { readonly input: PutScalingPolicyRequestInput; readonly output: PutScalingPolicyResponseOutput };
  readonly PutScheduledAction: { readonly input: PutScheduledActionRequestInput; readonly output: PutScheduledActionResponseOutput };
  readonly RegisterScalableTarget: { readonly input: RegisterScalableTargetRequestInput; readonly output: RegisterScalableTargetResponseOutput };
  readonly TagResource: { readonly input: TagResourceRequestInput; readonly output: TagResourceResponseOutput };
  readonly UntagResource: { readonly input: UntagResourceRequestInput; readonly output: UntagResourceResponseOutput };
}

/** The structures that inputs are made of, by their published names. */
export interface ApplicationAutoscalingInputs {
  readonly CustomizedMetricSpecification: CustomizedMetricSpecificationInput;
  readonly DeleteScalingPolicyRequest: DeleteScalingPolicyRequestInput;
  readonly DeleteScheduledActionRequest: DeleteScheduledActionRequestInput;
  readonly DeregisterScalableTargetRequest: DeregisterScalableTargetRequestInput;
  readonly DescribeScalableTargetsRequest: DescribeScalableTargetsRequestInput;
  readonly DescribeScalingActivitiesRequest: DescribeScalingActivitiesRequestInput;
  readonly DescribeScalingPoliciesRequest: DescribeScalingPoliciesRequestInput;
  readonly DescribeScheduledActionsRequest: DescribeScheduledActionsRequestInput;
  readonly ListTagsForResourceRequest: ListTagsForResourceRequestInput;
  readonly MetricDimension: MetricDimensionInput;
  readonly PredefinedMetricSpecification: PredefinedMetricSpecificationInput;
  readonly PredictiveScalingCustomizedMetricSpecification: PredictiveScalingCustomizedMetricSpecificationInput;
  readonly PredictiveScalingMetric: PredictiveScalingMetricInput;
  readonly PredictiveScalingMetricDataQuery: PredictiveScalingMetricDataQueryInput;
  readonly PredictiveScalingMetricDimension: PredictiveScalingMetricDimensionInput;
  readonly PredictiveScalingMetricSpecification: PredictiveScalingMetricSpecificationInput;
  readonly PredictiveScalingMetricStat: PredictiveScalingMetricStatInput;
  readonly PredictiveScalingPolicyConfiguration: PredictiveScalingPolicyConfigurationInput;
  readonly PredictiveScalingPredefinedLoadMetricSpecification: PredictiveScalingPredefinedLoadMetricSpecificationInput;
  readonly PredictiveScalingPredefinedMetricPairSpecification: PredictiveScalingPredefinedMetricPairSpecificationInput;
  readonly PredictiveScalingPredefinedScalingMetricSpecification: PredictiveScalingPredefinedScalingMetricSpecificationInput;
  readonly PutScalingPolicyRequest: PutScalingPolicyRequestInput;
  readonly PutScheduledActionRequest: PutScheduledActionRequestInput;
  readonly RegisterScalableTargetRequest: RegisterScalableTargetRequestInput;
  readonly ScalableTargetAction: ScalableTargetActionInput;
  readonly StepAdjustment: StepAdjustmentInput;
  readonly StepScalingPolicyConfiguration: StepScalingPolicyConfigurationInput;
  readonly SuspendedState: SuspendedStateInput;
  readonly TagResourceRequest: TagResourceRequestInput;
  readonly TargetTrackingMetric: TargetTrackingMetricInput;
  readonly TargetTrackingMetricDataQuery: TargetTrackingMetricDataQueryInput;
  readonly TargetTrackingMetricDimension: TargetTrackingMetricDimensionInput;
  readonly TargetTrackingMetricStat: TargetTrackingMetricStatInput;
  readonly TargetTrackingScalingPolicyConfiguration: TargetTrackingScalingPolicyConfigurationInput;
  readonly UntagResourceRequest: UntagResourceRequestInput;
}

interface CustomizedMetricSpecificationInput {
  readonly MetricName?: string;
  readonly Namespace?: string;
  readonly Dimensions?: readonly MetricDimensionInput[];
  readonly Statistic?: "Average" | "Minimum" | "Maximum" | "SampleCount" | "Sum";
  readonly Unit?: string;
  readonly Metrics?: readonly TargetTrackingMetricDataQueryInput[];
}

interface DeleteScalingPolicyRequestInput {
  readonly PolicyName: string;
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly ResourceId: string;
  readonly ScalableDimension: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
}

interface DeleteScheduledActionRequestInput {
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly ScheduledActionName: string;
  readonly ResourceId: string;
  readonly ScalableDimension: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
}

interface DeregisterScalableTargetRequestInput {
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly ResourceId: string;
  readonly ScalableDimension: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
}

interface DescribeScalableTargetsRequestInput {
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly ResourceIds?: readonly string[];
  readonly ScalableDimension?: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
  readonly MaxResults?: number;
  readonly NextToken?: string;
}

interface DescribeScalingActivitiesRequestInput {
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly ResourceId?: string;
  readonly ScalableDimension?: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
  readonly MaxResults?: number;
  readonly NextToken?: string;
  readonly IncludeNotScaledActivities?: boolean;
}

interface DescribeScalingPoliciesRequestInput {
  readonly PolicyNames?: readonly string[];
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly ResourceId?: string;
  readonly ScalableDimension?: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
  readonly MaxResults?: number;
  readonly NextToken?: string;
}

interface DescribeScheduledActionsRequestInput {
  readonly ScheduledActionNames?: readonly string[];
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly ResourceId?: string;
  readonly ScalableDimension?: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
  readonly MaxResults?: number;
  readonly NextToken?: string;
}

interface ListTagsForResourceRequestInput {
  readonly ResourceARN: string;
}

interface MetricDimensionInput {
  readonly Name: string;
  readonly Value: string;
}

interface PredefinedMetricSpecificationInput {
  readonly PredefinedMetricType: "DynamoDBReadCapacityUtilization" | "DynamoDBWriteCapacityUtilization" | "ALBRequestCountPerTarget" | "RDSReaderAverageCPUUtilization" | "RDSReaderAverageDatabaseConnections" | "EC2SpotFleetRequestAverageCPUUtilization" | "EC2SpotFleetRequestAverageNetworkIn" | "EC2SpotFleetRequestAverageNetworkOut" | "SageMakerVariantInvocationsPerInstance" | "ECSServiceAverageCPUUtilization" | "ECSServiceAverageMemoryUtilization" | "AppStreamAverageCapacityUtilization" | "ComprehendInferenceUtilization" | "LambdaProvisionedConcurrencyUtilization" | "CassandraReadCapacityUtilization" | "CassandraWriteCapacityUtilization" | "KafkaBrokerStorageUtilization" | "ElastiCacheEngineCPUUtilization" | "ElastiCacheDatabaseMemoryUsagePercentage" | "ElastiCachePrimaryEngineCPUUtilization" | "ElastiCacheReplicaEngineCPUUtilization" | "ElastiCacheDatabaseMemoryUsageCountedForEvictPercentage" | "NeptuneReaderAverageCPUUtilization" | "SageMakerVariantProvisionedConcurrencyUtilization" | "ElastiCacheDatabaseCapacityUsageCountedForEvictPercentage" | "SageMakerInferenceComponentInvocationsPerCopy" | "WorkSpacesAverageUserSessionsCapacityUtilization" | "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution" | "SageMakerVariantConcurrentRequestsPerModelHighResolution" | "ECSServiceAverageCPUUtilizationHighResolution" | "ECSServiceAverageMemoryUtilizationHighResolution";
  readonly ResourceLabel?: string;
}

interface PredictiveScalingCustomizedMetricSpecificationInput {
  readonly MetricDataQueries: readonly PredictiveScalingMetricDataQueryInput[];
}

interface PredictiveScalingMetricInput {
  readonly Dimensions?: readonly PredictiveScalingMetricDimensionInput[];
  readonly MetricName?: string;
  readonly Namespace?: string;
}

interface PredictiveScalingMetricDataQueryInput {
  readonly Id: string;
  readonly Expression?: string;
  readonly MetricStat?: PredictiveScalingMetricStatInput;
  readonly Label?: string;
  readonly ReturnData?: boolean;
}

interface PredictiveScalingMetricDimensionInput {
  readonly Name: string;
  readonly Value: string;
}

interface PredictiveScalingMetricSpecificationInput {
  readonly TargetValue: number;
  readonly PredefinedMetricPairSpecification?: PredictiveScalingPredefinedMetricPairSpecificationInput;
  readonly PredefinedScalingMetricSpecification?: PredictiveScalingPredefinedScalingMetricSpecificationInput;
  readonly PredefinedLoadMetricSpecification?: PredictiveScalingPredefinedLoadMetricSpecificationInput;
  readonly CustomizedScalingMetricSpecification?: PredictiveScalingCustomizedMetricSpecificationInput;
  readonly CustomizedLoadMetricSpecification?: PredictiveScalingCustomizedMetricSpecificationInput;
  readonly CustomizedCapacityMetricSpecification?: PredictiveScalingCustomizedMetricSpecificationInput;
}

interface PredictiveScalingMetricStatInput {
  readonly Metric: PredictiveScalingMetricInput;
  readonly Stat: string;
  readonly Unit?: string;
}

interface PredictiveScalingPolicyConfigurationInput {
  readonly MetricSpecifications: readonly PredictiveScalingMetricSpecificationInput[];
  readonly Mode?: "ForecastOnly" | "ForecastAndScale";
  readonly SchedulingBufferTime?: number;
  readonly MaxCapacityBreachBehavior?: "HonorMaxCapacity" | "IncreaseMaxCapacity";
  readonly MaxCapacityBuffer?: number;
}

interface PredictiveScalingPredefinedLoadMetricSpecificationInput {
  readonly PredefinedMetricType: string;
  readonly ResourceLabel?: string;
}

interface PredictiveScalingPredefinedMetricPairSpecificationInput {
  readonly PredefinedMetricType: string;
  readonly ResourceLabel?: string;
}

interface PredictiveScalingPredefinedScalingMetricSpecificationInput {
  readonly PredefinedMetricType: string;
  readonly ResourceLabel?: string;
}

interface PutScalingPolicyRequestInput {
  readonly PolicyName: string;
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly ResourceId: string;
  readonly ScalableDimension: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
  readonly PolicyType?: "StepScaling" | "TargetTrackingScaling" | "PredictiveScaling";
  readonly StepScalingPolicyConfiguration?: StepScalingPolicyConfigurationInput;
  readonly TargetTrackingScalingPolicyConfiguration?: TargetTrackingScalingPolicyConfigurationInput;
  readonly PredictiveScalingPolicyConfiguration?: PredictiveScalingPolicyConfigurationInput;
}

interface PutScheduledActionRequestInput {
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly Schedule?: string;
  readonly Timezone?: string;
  readonly ScheduledActionName: string;
  readonly ResourceId: string;
  readonly ScalableDimension: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
  readonly StartTime?: Date;
  readonly EndTime?: Date;
  readonly ScalableTargetAction?: ScalableTargetActionInput;
}

interface RegisterScalableTargetRequestInput {
  readonly ServiceNamespace: "ecs" | "elasticmapreduce" | "ec2" | "appstream" | "dynamodb" | "rds" | "sagemaker" | "custom-resource" | "comprehend" | "lambda" | "cassandra" | "kafka" | "elasticache" | "neptune" | "workspaces";
  readonly ResourceId: string;
  readonly ScalableDimension: "ecs:service:DesiredCount" | "ec2:spot-fleet-request:TargetCapacity" | "elasticmapreduce:instancegroup:InstanceCount" | "appstream:fleet:DesiredCapacity" | "dynamodb:table:ReadCapacityUnits" | "dynamodb:table:WriteCapacityUnits" | "dynamodb:index:ReadCapacityUnits" | "dynamodb:index:WriteCapacityUnits" | "rds:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredInstanceCount" | "custom-resource:ResourceType:Property" | "comprehend:document-classifier-endpoint:DesiredInferenceUnits" | "comprehend:entity-recognizer-endpoint:DesiredInferenceUnits" | "lambda:function:ProvisionedConcurrency" | "cassandra:table:ReadCapacityUnits" | "cassandra:table:WriteCapacityUnits" | "kafka:broker-storage:VolumeSize" | "elasticache:cache-cluster:Nodes" | "elasticache:replication-group:NodeGroups" | "elasticache:replication-group:Replicas" | "neptune:cluster:ReadReplicaCount" | "sagemaker:variant:DesiredProvisionedConcurrency" | "sagemaker:inference-component:DesiredCopyCount" | "workspaces:workspacespool:DesiredUserSessions";
  readonly MinCapacity?: number;
  readonly MaxCapacity?: number;
  readonly RoleARN?: string;
  readonly SuspendedState?: SuspendedStateInput;
  readonly Tags?: Readonly<Record<string, string>>;
}

interface ScalableTargetActionInput {
  readonly MinCapacity?: number;
  readonly MaxCapacity?: number;
}

interface StepAdjustmentInput {
  readonly MetricIntervalLowerBound?: number;
  readonly MetricIntervalUpperBound?: number;
  readonly ScalingAdjustment: number;
}

interface StepScalingPolicyConfigurationInput {
  readonly AdjustmentType?: "ChangeInCapacity" | "PercentChangeInCapacity" | "ExactCapacity";
  readonly StepAdjustments?: readonly StepAdjustmentInput[];
  readonly MinAdjustmentMagnitude?: number;
  readonly Cooldown?: number;
  readonly MetricAggregationType?: "Average" | "Minimum" | "Maximum";
}

interface SuspendedStateInput {
  readonly DynamicScalingInSuspended?: boolean;
  readonly DynamicScalingOutSuspended?: boolean;
  readonly ScheduledScalingSuspended?: boolean;
}

interface TagResourceRequestInput {
  readonly ResourceARN: string;
  readonly Tags: Readonly<Record<string, string>>;
}

interface TargetTrackingMetricInput {
  readonly Dimensions?: readonly TargetTrackingMetricDimensionInput[];
  readonly MetricName?: string;
  readonly Namespace?: string;
}

interface TargetTrackingMetricDataQueryInput {
  readonly Expression?: string;
  readonly Id: string;
  readonly Label?: string;
  readonly MetricStat?: TargetTrackingMetricStatInput;
  readonly ReturnData?: boolean;
}

interface TargetTrackingMetricDimensionInput {
  readonly Name: string;
  readonly Value: string;
}

interface TargetTrackingMetricStatInput {
  readonly Metric: TargetTrackingMetricInput;
  readonly Stat: string;
  readonly Unit?: string;
}

interface TargetTrackingScalingPolicyConfigurationInput {
  readonly TargetValue: number;
  readonly PredefinedMetricSpecification?: PredefinedMetricSpecificationInput;
  readonly CustomizedMetricSpecification?: CustomizedMetricSpecificationInput;
  readonly ScaleOutCooldown?: number;
  readonly ScaleInCooldown?: number;
  readonly DisableScaleIn?: boolean;
}

interface UntagResourceRequestInput {
  readonly ResourceARN: string;
  readonly TagKeys: readonly string[];
}

interface AlarmOutput {
  readonly AlarmName: string;
  readonly AlarmARN: string;
}

interface CustomizedMetricSpecificationOutput {
  readonly MetricName?: string | null | undefined;
  readonly Namespace?: string | null | undefined;
  readonly Dimensions?: readonly MetricDimensionOutput[] | null | undefined;
  readonly Statistic?: string | null | undefined;
  readonly Unit?: string | null | undefined;
  readonly Metrics?: readonly TargetTrackingMetricDataQueryOutput[] | null | undefined;
}

interface DeleteScalingPolicyResponseOutput {
}

interface DeleteScheduledActionResponseOutput {
}

interface DeregisterScalableTargetResponseOutput {
}

interface DescribeScalableTargetsResponseOutput {
  readonly ScalableTargets?: readonly ScalableTargetOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface DescribeScalingActivitiesResponseOutput {
  readonly ScalingActivities?: readonly ScalingActivityOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface DescribeScalingPoliciesResponseOutput {
  readonly ScalingPolicies?: readonly ScalingPolicyOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface DescribeScheduledActionsResponseOutput {
  readonly ScheduledActions?: readonly ScheduledActionOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface ListTagsForResourceResponseOutput {
  readonly Tags?: Readonly<Record<string, string>> | null | undefined;
}

interface MetricDimensionOutput {
  readonly Name: string;
  readonly Value: string;
}

interface NotScaledReasonOutput {
  readonly Code: string;
  readonly MaxCapacity?: number | null | undefined;
  readonly MinCapacity?: number | null | undefined;
  readonly CurrentCapacity?: number | null | undefined;
}

interface PredefinedMetricSpecificationOutput {
  readonly PredefinedMetricType: string;
  readonly ResourceLabel?: string | null | undefined;
}

interface PredictiveScalingCustomizedMetricSpecificationOutput {
  readonly MetricDataQueries: readonly PredictiveScalingMetricDataQueryOutput[];
}

interface PredictiveScalingMetricOutput {
  readonly Dimensions?: readonly PredictiveScalingMetricDimensionOutput[] | null | undefined;
  readonly MetricName?: string | null | undefined;
  readonly Namespace?: string | null | undefined;
}

interface PredictiveScalingMetricDataQueryOutput {
  readonly Id: string;
  readonly Expression?: string | null | undefined;
  readonly MetricStat?: PredictiveScalingMetricStatOutput | null | undefined;
  readonly Label?: string | null | undefined;
  readonly ReturnData?: boolean | null | undefined;
}

interface PredictiveScalingMetricDimensionOutput {
  readonly Name: string;
  readonly Value: string;
}

interface PredictiveScalingMetricSpecificationOutput {
  readonly TargetValue: number;
  readonly PredefinedMetricPairSpecification?: PredictiveScalingPredefinedMetricPairSpecificationOutput | null | undefined;
  readonly PredefinedScalingMetricSpecification?: PredictiveScalingPredefinedScalingMetricSpecificationOutput | null | undefined;
  readonly PredefinedLoadMetricSpecification?: PredictiveScalingPredefinedLoadMetricSpecificationOutput | null | undefined;
  readonly CustomizedScalingMetricSpecification?: PredictiveScalingCustomizedMetricSpecificationOutput | null | undefined;
  readonly CustomizedLoadMetricSpecification?: PredictiveScalingCustomizedMetricSpecificationOutput | null | undefined;
  readonly CustomizedCapacityMetricSpecification?: PredictiveScalingCustomizedMetricSpecificationOutput | null | undefined;
}

interface PredictiveScalingMetricStatOutput {
  readonly Metric: PredictiveScalingMetricOutput;
  readonly Stat: string;
  readonly Unit?: string | null | undefined;
}

interface PredictiveScalingPolicyConfigurationOutput {
  readonly MetricSpecifications: readonly PredictiveScalingMetricSpecificationOutput[];
  readonly Mode?: string | null | undefined;
  readonly SchedulingBufferTime?: number | null | undefined;
  readonly MaxCapacityBreachBehavior?: string | null | undefined;
  readonly MaxCapacityBuffer?: number | null | undefined;
}

interface PredictiveScalingPredefinedLoadMetricSpecificationOutput {
  readonly PredefinedMetricType: string;
  readonly ResourceLabel?: string | null | undefined;
}

interface PredictiveScalingPredefinedMetricPairSpecificationOutput {
  readonly PredefinedMetricType: string;
  readonly ResourceLabel?: string | null | undefined;
}

interface PredictiveScalingPredefinedScalingMetricSpecificationOutput {
  readonly PredefinedMetricType: string;
  readonly ResourceLabel?: string | null | undefined;
}

interface PutScalingPolicyResponseOutput {
  readonly PolicyARN: string;
  readonly Alarms?: readonly AlarmOutput[] | null | undefined;
}

interface PutScheduledActionResponseOutput {
}

interface RegisterScalableTargetResponseOutput {
  readonly ScalableTargetARN?: string | null | undefined;
}

interface ScalableTargetOutput {
  readonly ServiceNamespace: string;
  readonly ResourceId: string;
  readonly ScalableDimension: string;
  readonly MinCapacity: number;
  readonly MaxCapacity: number;
  readonly PredictedCapacity?: number | null | undefined;
  readonly RoleARN: string;
  readonly CreationTime: Date;
  readonly SuspendedState?: SuspendedStateOutput | null | undefined;
  readonly ScalableTargetARN?: string | null | undefined;
}

interface ScalableTargetActionOutput {
  readonly MinCapacity?: number | null | undefined;
  readonly MaxCapacity?: number | null | undefined;
}

interface ScalingActivityOutput {
  readonly ActivityId: string;
  readonly ServiceNamespace: string;
  readonly ResourceId: string;
  readonly ScalableDimension: string;
  readonly Description: string;
  readonly Cause: string;
  readonly StartTime: Date;
  readonly EndTime?: Date | null | undefined;
  readonly StatusCode: string;
  readonly StatusMessage?: string | null | undefined;
  readonly Details?: string | null | undefined;
  readonly NotScaledReasons?: readonly NotScaledReasonOutput[] | null | undefined;
}

interface ScalingPolicyOutput {
  readonly PolicyARN: string;
  readonly PolicyName: string;
  readonly ServiceNamespace: string;
  readonly ResourceId: string;
  readonly ScalableDimension: string;
  readonly PolicyType: string;
  readonly StepScalingPolicyConfiguration?: StepScalingPolicyConfigurationOutput | null | undefined;
  readonly TargetTrackingScalingPolicyConfiguration?: TargetTrackingScalingPolicyConfigurationOutput | null | undefined;
  readonly PredictiveScalingPolicyConfiguration?: PredictiveScalingPolicyConfigurationOutput | null | undefined;
  readonly Alarms?: readonly AlarmOutput[] | null | undefined;
  readonly CreationTime: Date;
}

interface ScheduledActionOutput {
  readonly ScheduledActionName: string;
  readonly ScheduledActionARN: string;
  readonly ServiceNamespace: string;
  readonly Schedule: string;
  readonly Timezone?: string | null | undefined;
  readonly ResourceId: string;
  readonly ScalableDimension?: string | null | undefined;
  readonly StartTime?: Date | null | undefined;
  readonly EndTime?: Date | null | undefined;
  readonly ScalableTargetAction?: ScalableTargetActionOutput | null | undefined;
  readonly CreationTime: Date;
}

interface StepAdjustmentOutput {
  readonly MetricIntervalLowerBound?: number | null | undefined;
  readonly MetricIntervalUpperBound?: number | null | undefined;
  readonly ScalingAdjustment: number;
}

interface StepScalingPolicyConfigurationOutput {
  readonly AdjustmentType?: string | null | undefined;
  readonly StepAdjustments?: readonly StepAdjustmentOutput[] | null | undefined;
  readonly MinAdjustmentMagnitude?: number | null | undefined;
  readonly Cooldown?: number | null | undefined;
  readonly MetricAggregationType?: string | null | undefined;
}

interface SuspendedStateOutput {
  readonly DynamicScalingInSuspended?: boolean | null | undefined;
  readonly DynamicScalingOutSuspended?: boolean | null | undefined;
  readonly ScheduledScalingSuspended?: boolean | null | undefined;
}

interface TagResourceResponseOutput {
}

interface TargetTrackingMetricOutput {
  readonly Dimensions?: readonly TargetTrackingMetricDimensionOutput[] | null | undefined;
  readonly MetricName?: string | null | undefined;
  readonly Namespace?: string | null | undefined;
}

interface TargetTrackingMetricDataQueryOutput {
  readonly Expression?: string | null | undefined;
  readonly Id: string;
  readonly Label?: string | null | undefined;
  readonly MetricStat?: TargetTrackingMetricStatOutput | null | undefined;
  readonly ReturnData?: boolean | null | undefined;
}

interface TargetTrackingMetricDimensionOutput {
  readonly Name: string;
  readonly Value: string;
}

interface TargetTrackingMetricStatOutput {
  readonly Metric: TargetTrackingMetricOutput;
  readonly Stat: string;
  readonly Unit?: string | null | undefined;
}

interface TargetTrackingScalingPolicyConfigurationOutput {
  readonly TargetValue: number;
  readonly PredefinedMetricSpecification?: PredefinedMetricSpecificationOutput | null | undefined;
  readonly CustomizedMetricSpecification?: CustomizedMetricSpecificationOutput | null | undefined;
  readonly ScaleOutCooldown?: number | null | undefined;
  readonly ScaleInCooldown?: number | null | undefined;
  readonly DisableScaleIn?: boolean | null | undefined;
}

interface UntagResourceResponseOutput {
}
