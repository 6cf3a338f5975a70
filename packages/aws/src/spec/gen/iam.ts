/** Written by scripts/aws-types.ts from iam.json. Inputs are as parsed and checked against that model. */
export interface IamOperations {
  readonly AttachRolePolicy: { readonly input: AttachRolePolicyRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly CreatePolicy: { readonly input: CreatePolicyRequestInput; readonly output: CreatePolicyResponseOutput };
  readonly CreateRole: { readonly input: CreateRoleRequestInput; readonly output: CreateRoleResponseOutput };
  readonly DeletePolicy: { readonly input: DeletePolicyRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteRole: { readonly input: DeleteRoleRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteRolePolicy: { readonly input: DeleteRolePolicyRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly DetachRolePolicy: { readonly input: DetachRolePolicyRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly GetPolicy: { readonly input: GetPolicyRequestInput; readonly output: GetPolicyResponseOutput };
  readonly GetRole: { readonly input: GetRoleRequestInput; readonly output: GetRoleResponseOutput };
  readonly GetRolePolicy: { readonly input: GetRolePolicyRequestInput; readonly output: GetRolePolicyResponseOutput };
  readonly ListAttachedRolePolicies: { readonly input: ListAttachedRolePoliciesRequestInput; readonly output: ListAttachedRolePoliciesResponseOutput };
  readonly ListRolePolicies: { readonly input: ListRolePoliciesRequestInput; readonly output: ListRolePoliciesResponseOutput };
  readonly ListRoles: { readonly input: ListRolesRequestInput; readonly output: ListRolesResponseOutput };
  readonly PutRolePolicy: { readonly input: PutRolePolicyRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly SimulatePrincipalPolicy: { readonly input: SimulatePrincipalPolicyRequestInput; readonly output: SimulatePolicyResponseOutput };
  readonly UpdateAssumeRolePolicy: { readonly input: UpdateAssumeRolePolicyRequestInput; readonly output: Readonly<Record<string, never>> };
}

/** The structures that inputs are made of, by their published names. */
export interface IamInputs {
  readonly AttachRolePolicyRequest: AttachRolePolicyRequestInput;
  readonly ContextEntry: ContextEntryInput;
  readonly CreatePolicyRequest: CreatePolicyRequestInput;
  readonly CreateRoleRequest: CreateRoleRequestInput;
  readonly DeletePolicyRequest: DeletePolicyRequestInput;
  readonly DeleteRolePolicyRequest: DeleteRolePolicyRequestInput;
  readonly DeleteRoleRequest: DeleteRoleRequestInput;
  readonly DetachRolePolicyRequest: DetachRolePolicyRequestInput;
  readonly GetPolicyRequest: GetPolicyRequestInput;
  readonly GetRolePolicyRequest: GetRolePolicyRequestInput;
  readonly GetRoleRequest: GetRoleRequestInput;
  readonly InlinePolicyIdentifierType: InlinePolicyIdentifierTypeInput;
  readonly ListAttachedRolePoliciesRequest: ListAttachedRolePoliciesRequestInput;
  readonly ListRolePoliciesRequest: ListRolePoliciesRequestInput;
  readonly ListRolesRequest: ListRolesRequestInput;
  readonly PolicyIdentifier: PolicyIdentifierInput;
  readonly PutRolePolicyRequest: PutRolePolicyRequestInput;
  readonly SimulatePrincipalPolicyRequest: SimulatePrincipalPolicyRequestInput;
  readonly Tag: TagInput;
  readonly UpdateAssumeRolePolicyRequest: UpdateAssumeRolePolicyRequestInput;
}

interface AttachRolePolicyRequestInput {
  readonly RoleName: string;
  readonly PolicyArn: string;
}

interface ContextEntryInput {
  readonly ContextKeyName?: string;
  readonly ContextKeyValues?: readonly string[];
  readonly ContextKeyType?: "string" | "stringList" | "numeric" | "numericList" | "boolean" | "booleanList" | "ip" | "ipList" | "binary" | "binaryList" | "date" | "dateList";
}

interface CreatePolicyRequestInput {
  readonly PolicyName: string;
  readonly Path?: string;
  readonly PolicyDocument: string;
  readonly Description?: string;
  readonly Tags?: readonly TagInput[];
}

interface CreateRoleRequestInput {
  readonly Path?: string;
  readonly RoleName: string;
  readonly AssumeRolePolicyDocument: string;
  readonly Description?: string;
  readonly MaxSessionDuration?: number;
  readonly PermissionsBoundary?: string;
  readonly Tags?: readonly TagInput[];
}

interface DeletePolicyRequestInput {
  readonly PolicyArn: string;
}

interface DeleteRolePolicyRequestInput {
  readonly RoleName: string;
  readonly PolicyName: string;
}

interface DeleteRoleRequestInput {
  readonly RoleName: string;
}

interface DetachRolePolicyRequestInput {
  readonly RoleName: string;
  readonly PolicyArn: string;
}

interface GetPolicyRequestInput {
  readonly PolicyArn: string;
}

interface GetRolePolicyRequestInput {
  readonly RoleName: string;
  readonly PolicyName: string;
}

interface GetRoleRequestInput {
  readonly RoleName: string;
}

interface InlinePolicyIdentifierTypeInput {
  readonly PolicyName: string;
  readonly AttachmentType: "user" | "group" | "role";
  readonly AttachmentName: string;
}

interface ListAttachedRolePoliciesRequestInput {
  readonly RoleName: string;
  readonly PathPrefix?: string;
  readonly Marker?: string;
  readonly MaxItems?: number;
}

interface ListRolePoliciesRequestInput {
  readonly RoleName: string;
  readonly Marker?: string;
  readonly MaxItems?: number;
}

interface ListRolesRequestInput {
  readonly PathPrefix?: string;
  readonly Marker?: string;
  readonly MaxItems?: number;
}

interface PolicyIdentifierInput {
  readonly PolicyType?: "inline" | "aws-managed" | "user-managed" | "permission-boundary" | "scp" | "rcp";
  readonly PolicyArn?: string;
  readonly InlinePolicyIdentifier?: InlinePolicyIdentifierTypeInput;
}

interface PutRolePolicyRequestInput {
  readonly RoleName: string;
  readonly PolicyName: string;
  readonly PolicyDocument: string;
}

interface SimulatePrincipalPolicyRequestInput {
  readonly PolicySourceArn: string;
  readonly PolicyInputList?: readonly string[];
  readonly PermissionsBoundaryPolicyInputList?: readonly string[];
  readonly PolicyExclusionList?: readonly PolicyIdentifierInput[];
  readonly ActionNames: readonly string[];
  readonly ResourceArns?: readonly string[];
  readonly ResourcePolicy?: string;
  readonly ResourceOwner?: string;
  readonly CallerArn?: string;
  readonly ContextEntries?: readonly ContextEntryInput[];
  readonly ResourceHandlingOption?: string;
  readonly MaxItems?: number;
  readonly Marker?: string;
}

interface TagInput {
  readonly Key: string;
  readonly Value: string;
}

interface UpdateAssumeRolePolicyRequestInput {
  readonly RoleName: string;
  readonly PolicyDocument: string;
}

interface AttachedPermissionsBoundaryOutput {
  readonly PermissionsBoundaryType?: string | null | undefined;
  readonly PermissionsBoundaryArn?: string | null | undefined;
}

interface AttachedPolicyOutput {
  readonly PolicyName?: string | null | undefined;
  readonly PolicyArn?: string | null | undefined;
}

interface CreatePolicyResponseOutput {
  readonly Policy?: PolicyOutput | null | undefined;
}

interface CreateRoleResponseOutput {
  readonly Role: RoleOutput;
}

interface EvaluationResultOutput {
  readonly EvalActionName: string;
  readonly EvalResourceName?: string | null | undefined;
  readonly EvalDecision: string;
  readonly MatchedStatements?: readonly StatementOutput[] | null | undefined;
  readonly MissingContextValues?: readonly string[] | null | undefined;
  readonly OrganizationsDecisionDetail?: OrganizationsDecisionDetailOutput | null | undefined;
  readonly PermissionsBoundaryDecisionDetail?: PermissionsBoundaryDecisionDetailOutput | null | undefined;
  readonly EvalDecisionDetails?: Readonly<Record<string, string>> | null | undefined;
  readonly ResourceSpecificResults?: readonly ResourceSpecificResultOutput[] | null | undefined;
}

interface GetPolicyResponseOutput {
  readonly Policy?: PolicyOutput | null | undefined;
}

interface GetRolePolicyResponseOutput {
  readonly RoleName: string;
  readonly PolicyName: string;
  readonly PolicyDocument: string;
}

interface GetRoleResponseOutput {
  readonly Role: RoleOutput;
}

interface ListAttachedRolePoliciesResponseOutput {
  readonly AttachedPolicies?: readonly AttachedPolicyOutput[] | null | undefined;
  readonly IsTruncated?: boolean | null | undefined;
  readonly Marker?: string | null | undefined;
}

interface ListRolePoliciesResponseOutput {
  readonly PolicyNames: readonly string[];
  readonly IsTruncated?: boolean | null | undefined;
  readonly Marker?: string | null | undefined;
}

interface ListRolesResponseOutput {
  readonly Roles: readonly RoleOutput[];
  readonly IsTruncated?: boolean | null | undefined;
  readonly Marker?: string | null | undefined;
}

interface OrganizationsDecisionDetailOutput {
  readonly AllowedByOrganizations?: boolean | null | undefined;
}

interface PermissionsBoundaryDecisionDetailOutput {
  readonly AllowedByPermissionsBoundary?: boolean | null | undefined;
}

interface PolicyOutput {
  readonly PolicyName?: string | null | undefined;
  readonly PolicyId?: string | null | undefined;
  readonly Arn?: string | null | undefined;
  readonly Path?: string | null | undefined;
  readonly DefaultVersionId?: string | null | undefined;
  readonly AttachmentCount?: number | null | undefined;
  readonly PermissionsBoundaryUsageCount?: number | null | undefined;
  readonly IsAttachable?: boolean | null | undefined;
  readonly Description?: string | null | undefined;
  readonly CreateDate?: Date | null | undefined;
  readonly UpdateDate?: Date | null | undefined;
  readonly Tags?: readonly TagOutput[] | null | undefined;
}

interface PositionOutput {
  readonly Line?: number | null | undefined;
  readonly Column?: number | null | undefined;
}

interface ResourceSpecificResultOutput {
  readonly EvalResourceName: string;
  readonly EvalResourceDecision: string;
  readonly MatchedStatements?: readonly StatementOutput[] | null | undefined;
  readonly MissingContextValues?: readonly string[] | null | undefined;
  readonly EvalDecisionDetails?: Readonly<Record<string, string>> | null | undefined;
  readonly PermissionsBoundaryDecisionDetail?: PermissionsBoundaryDecisionDetailOutput | null | undefined;
}

interface RoleOutput {
  readonly Path: string;
  readonly RoleName: string;
  readonly RoleId: string;
  readonly Arn: string;
  readonly CreateDate: Date;
  readonly AssumeRolePolicyDocument?: string | null | undefined;
  readonly Description?: string | null | undefined;
  readonly MaxSessionDuration?: number | null | undefined;
  readonly PermissionsBoundary?: AttachedPermissionsBoundaryOutput | null | undefined;
  readonly Tags?: readonly TagOutput[] | null | undefined;
  readonly RoleLastUsed?: RoleLastUsedOutput | null | undefined;
  readonly SourceRoleTemplate?: SourceRoleTemplateOutput | null | undefined;
}

interface RoleLastUsedOutput {
  readonly LastUsedDate?: Date | null | undefined;
  readonly Region?: string | null | undefined;
}

interface SimulatePolicyResponseOutput {
  readonly EvaluationResults?: readonly EvaluationResultOutput[] | null | undefined;
  readonly IsTruncated?: boolean | null | undefined;
  readonly Marker?: string | null | undefined;
}

interface SourceRoleTemplateOutput {
  readonly TemplateArn: string;
  readonly TemplateMinorVersion: number;
}

interface StatementOutput {
  readonly SourcePolicyId?: string | null | undefined;
  readonly SourcePolicyType?: string | null | undefined;
  readonly StartPosition?: PositionOutput | null | undefined;
  readonly EndPosition?: PositionOutput | null | undefined;
}

interface TagOutput {
  readonly Key: string;
  readonly Value: string;
}
