/** Written by scripts/aws-types.ts from sts.json. Inputs are as parsed and checked against that model. */
export interface StsOperations {
  readonly AssumeRole: { readonly input: AssumeRoleRequestInput; readonly output: AssumeRoleResponseOutput };
  readonly GetAccessKeyInfo: { readonly input: GetAccessKeyInfoRequestInput; readonly output: GetAccessKeyInfoResponseOutput };
  readonly GetCallerIdentity: { readonly input: GetCallerIdentityRequestInput; readonly output: GetCallerIdentityResponseOutput };
  readonly GetSessionToken: { readonly input: GetSessionTokenRequestInput; readonly output: GetSessionTokenResponseOutput };
}

/** The structures that inputs are made of, by their published names. */
export interface StsInputs {
  readonly AssumeRoleRequest: AssumeRoleRequestInput;
  readonly GetAccessKeyInfoRequest: GetAccessKeyInfoRequestInput;
  readonly GetCallerIdentityRequest: GetCallerIdentityRequestInput;
  readonly GetSessionTokenRequest: GetSessionTokenRequestInput;
  readonly PolicyDescriptorType: PolicyDescriptorTypeInput;
  readonly ProvidedContext: ProvidedContextInput;
  readonly Tag: TagInput;
}

interface AssumeRoleRequestInput {
  readonly RoleArn: string;
  readonly RoleSessionName: string;
  readonly PolicyArns?: readonly PolicyDescriptorTypeInput[];
  readonly Policy?: string;
  readonly DurationSeconds?: number;
  readonly Tags?: readonly TagInput[];
  readonly TransitiveTagKeys?: readonly string[];
  readonly ExternalId?: string;
  readonly SerialNumber?: string;
  readonly TokenCode?: string;
  readonly SourceIdentity?: string;
  readonly ProvidedContexts?: readonly ProvidedContextInput[];
  readonly MinimumSessionTokenSize?: number;
}

interface GetAccessKeyInfoRequestInput {
  readonly AccessKeyId: string;
}

interface GetCallerIdentityRequestInput {
}

interface GetSessionTokenRequestInput {
  readonly DurationSeconds?: number;
  readonly SerialNumber?: string;
  readonly TokenCode?: string;
  readonly MinimumSessionTokenSize?: number;
}

interface PolicyDescriptorTypeInput {
  readonly arn?: string;
}

interface ProvidedContextInput {
  readonly ProviderArn?: string;
  readonly ContextAssertion?: string;
}

interface TagInput {
  readonly Key: string;
  readonly Value: string;
}

interface AssumeRoleResponseOutput {
  readonly Credentials?: CredentialsOutput | null | undefined;
  readonly AssumedRoleUser?: AssumedRoleUserOutput | null | undefined;
  readonly PackedPolicySize?: number | null | undefined;
  readonly SourceIdentity?: string | null | undefined;
  readonly SessionTokenUtilization?: number | null | undefined;
  readonly SessionTokenSize?: number | null | undefined;
}

interface AssumedRoleUserOutput {
  readonly AssumedRoleId: string;
  readonly Arn: string;
}

interface CredentialsOutput {
  readonly AccessKeyId: string;
  readonly SecretAccessKey: string;
  readonly SessionToken: string;
  readonly Expiration: Date;
}

interface GetAccessKeyInfoResponseOutput {
  readonly Account?: string | null | undefined;
}

interface GetCallerIdentityResponseOutput {
  readonly UserId?: string | null | undefined;
  readonly Account?: string | null | undefined;
  readonly Arn?: string | null | undefined;
}

interface GetSessionTokenResponseOutput {
  readonly Credentials?: CredentialsOutput | null | undefined;
  readonly SessionTokenUtilization?: number | null | undefined;
  readonly SessionTokenSize?: number | null | undefined;
}
