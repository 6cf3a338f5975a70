/** Written by scripts/aws-types.ts from sagemaker-runtime.json. Inputs are as parsed and checked against that model. */
export interface SagemakerRuntimeOperations {
  readonly InvokeEndpoint: { readonly input: InvokeEndpointInputInput; readonly output: InvokeEndpointOutputOutput };
  readonly InvokeEndpointAsync: { readonly input: InvokeEndpointAsyncInputInput; readonly output: InvokeEndpointAsyncOutputOutput };
  readonly InvokeEndpointWithResponseStream: { readonly input: InvokeEndpointWithResponseStreamInputInput; readonly output: InvokeEndpointWithResponseStreamOutputOutput };
}

/** The structures that inputs are made of, by their published names. */
export interface SagemakerRuntimeInputs {
  readonly InvokeEndpointAsyncInput: InvokeEndpointAsyncInputInput;
  readonly InvokeEndpointInput: InvokeEndpointInputInput;
  readonly InvokeEndpointWithResponseStreamInput: InvokeEndpointWithResponseStreamInputInput;
}

interface InvokeEndpointAsyncInputInput {
  readonly EndpointName: string;
  readonly ContentType?: string;
  readonly Accept?: string;
  readonly CustomAttributes?: string;
  readonly InferenceId?: string;
  readonly InputLocation?: string;
  readonly S3OutputPathExtension?: string;
  readonly Filename?: string;
  readonly RequestTTLSeconds?: number;
  readonly InvocationTimeoutSeconds?: number;
  readonly Body?: Uint8Array;
}

interface InvokeEndpointInputInput {
  readonly EndpointName: string;
  readonly Body: Uint8Array;
  readonly ContentType?: string;
  readonly Accept?: string;
  readonly CustomAttributes?: string;
  readonly TargetModel?: string;
  readonly TargetVariant?: string;
  readonly TargetContainerHostname?: string;
  readonly InferenceId?: string;
  readonly EnableExplanations?: string;
  readonly InferenceComponentName?: string;
  readonly SessionId?: string;
  readonly PrefixAwareId?: string;
}

interface InvokeEndpointWithResponseStreamInputInput {
  readonly EndpointName: string;
  readonly Body: Uint8Array;
  readonly ContentType?: string;
  readonly Accept?: string;
  readonly CustomAttributes?: string;
  readonly TargetVariant?: string;
  readonly TargetContainerHostname?: string;
  readonly InferenceId?: string;
  readonly InferenceComponentName?: string;
  readonly SessionId?: string;
  readonly PrefixAwareId?: string;
}

interface InternalStreamFailureOutput {
  readonly Message?: string | null | undefined;
}

interface InvokeEndpointAsyncOutputOutput {
  readonly InferenceId?: string | null | undefined;
  readonly OutputLocation?: string | null | undefined;
  readonly FailureLocation?: string | null | undefined;
}

interface InvokeEndpointOutputOutput {
  readonly Body: Uint8Array;
  readonly ContentType?: string | null | undefined;
  readonly InvokedProductionVariant?: string | null | undefined;
  readonly CustomAttributes?: string | null | undefined;
  readonly NewSessionId?: string | null | undefined;
  readonly ClosedSessionId?: string | null | undefined;
}

interface InvokeEndpointWithResponseStreamOutputOutput {
  readonly Body: AsyncIterable<ResponseStreamOutput>;
  readonly ContentType?: string | null | undefined;
  readonly InvokedProductionVariant?: string | null | undefined;
  readonly CustomAttributes?: string | null | undefined;
}

interface ModelStreamErrorOutput {
  readonly Message?: string | null | undefined;
  readonly ErrorCode?: string | null | undefined;
}

interface PayloadPartOutput {
  readonly Bytes?: Uint8Array | null | undefined;
}

interface ResponseStreamOutput {
  readonly PayloadPart?: PayloadPartOutput | null | undefined;
  readonly ModelStreamError?: ModelStreamErrorOutput | null | undefined;
  readonly InternalStreamFailure?: InternalStreamFailureOutput | null | undefined;
}
