/** Written by scripts/aws-types.ts from sns.json. Inputs are as parsed and checked against that model. */
export interface SnsOperations {
  readonly ConfirmSubscription: { readonly input: ConfirmSubscriptionInputInput; readonly output: ConfirmSubscriptionResponseOutput };
  readonly CreateTopic: { readonly input: CreateTopicInputInput; readonly output: CreateTopicResponseOutput };
  readonly DeleteTopic: { readonly input: DeleteTopicInputInput; readonly output: Readonly<Record<string, never>> };
  readonly GetSubscriptionAttributes: { readonly input: GetSubscriptionAttributesInputInput; readonly output: GetSubscriptionAttributesResponseOutput };
  readonly GetTopicAttributes: { readonly input: GetTopicAttributesInputInput; readonly output: GetTopicAttributesResponseOutput };
  readonly ListSubscriptions: { readonly input: ListSubscriptionsInputInput; readonly output: ListSubscriptionsResponseOutput };
  readonly ListSubscriptionsByTopic: { readonly input: ListSubscriptionsByTopicInputInput; readonly output: ListSubscriptionsByTopicResponseOutput };
  readonly ListTopics: { readonly input: ListTopicsInputInput; readonly output: ListTopicsResponseOutput };
  readonly Publish: { readonly input: PublishInputInput; readonly output: PublishResponseOutput };
  readonly SetSubscriptionAttributes: { readonly input: SetSubscriptionAttributesInputInput; readonly output: Readonly<Record<string, never>> };
  readonly SetTopicAttributes: { readonly input: SetTopicAttributesInputInput; readonly output: Readonly<Record<string, never>> };
  readonly Subscribe: { readonly input: SubscribeInputInput; readonly output: SubscribeResponseOutput };
  readonly Unsubscribe: { readonly input: UnsubscribeInputInput; readonly output: Readonly<Record<string, never>> };
}

/** The structures that inputs are made of, by their published names. */
export interface SnsInputs {
  readonly ConfirmSubscriptionInput: ConfirmSubscriptionInputInput;
  readonly CreateTopicInput: CreateTopicInputInput;
  readonly DeleteTopicInput: DeleteTopicInputInput;
  readonly GetSubscriptionAttributesInput: GetSubscriptionAttributesInputInput;
  readonly GetTopicAttributesInput: GetTopicAttributesInputInput;
  readonly ListSubscriptionsByTopicInput: ListSubscriptionsByTopicInputInput;
  readonly ListSubscriptionsInput: ListSubscriptionsInputInput;
  readonly ListTopicsInput: ListTopicsInputInput;
  readonly MessageAttributeValue: MessageAttributeValueInput;
  readonly PublishInput: PublishInputInput;
  readonly SetSubscriptionAttributesInput: SetSubscriptionAttributesInputInput;
  readonly SetTopicAttributesInput: SetTopicAttributesInputInput;
  readonly SubscribeInput: SubscribeInputInput;
  readonly Tag: TagInput;
  readonly UnsubscribeInput: UnsubscribeInputInput;
}

interface ConfirmSubscriptionInputInput {
  readonly TopicArn: string;
  readonly Token: string;
  readonly AuthenticateOnUnsubscribe?: string;
}

interface CreateTopicInputInput {
  readonly Name: string;
  readonly Attributes?: Readonly<Record<string, string>>;
  readonly Tags?: readonly TagInput[];
  readonly DataProtectionPolicy?: string;
}

interface DeleteTopicInputInput {
  readonly TopicArn: string;
}

interface GetSubscriptionAttributesInputInput {
  readonly SubscriptionArn: string;
}

interface GetTopicAttributesInputInput {
  readonly TopicArn: string;
}

interface ListSubscriptionsByTopicInputInput {
  readonly TopicArn: string;
  readonly NextToken?: string;
}

interface ListSubscriptionsInputInput {
  readonly NextToken?: string;
}

interface ListTopicsInputInput {
  readonly NextToken?: string;
}

interface MessageAttributeValueInput {
  readonly DataType: string;
  readonly StringValue?: string;
  readonly BinaryValue?: Uint8Array;
}

interface PublishInputInput {
  readonly TopicArn?: string;
  readonly TargetArn?: string;
  readonly PhoneNumber?: string;
  readonly Message: string;
  readonly Subject?: string;
  readonly MessageStructure?: string;
  readonly MessageAttributes?: Readonly<Record<string, MessageAttributeValueInput>>;
  readonly MessageDeduplicationId?: string;
  readonly MessageGroupId?: string;
}

interface SetSubscriptionAttributesInputInput {
  readonly SubscriptionArn: string;
  readonly AttributeName: string;
  readonly AttributeValue?: string;
}

interface SetTopicAttributesInputInput {
  readonly TopicArn: string;
  readonly AttributeName: string;
  readonly AttributeValue?: string;
}

interface SubscribeInputInput {
  readonly TopicArn: string;
  readonly Protocol: string;
  readonly Endpoint?: string;
  readonly Attributes?: Readonly<Record<string, string>>;
  readonly ReturnSubscriptionArn?: boolean;
}

interface TagInput {
  readonly Key: string;
  readonly Value: string;
}

interface UnsubscribeInputInput {
  readonly SubscriptionArn: string;
}

interface ConfirmSubscriptionResponseOutput {
  readonly SubscriptionArn?: string | null | undefined;
}

interface CreateTopicResponseOutput {
  readonly TopicArn?: string | null | undefined;
}

interface GetSubscriptionAttributesResponseOutput {
  readonly Attributes?: Readonly<Record<string, string>> | null | undefined;
}

interface GetTopicAttributesResponseOutput {
  readonly Attributes?: Readonly<Record<string, string>> | null | undefined;
}

interface ListSubscriptionsByTopicResponseOutput {
  readonly Subscriptions?: readonly SubscriptionOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface ListSubscriptionsResponseOutput {
  readonly Subscriptions?: readonly SubscriptionOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface ListTopicsResponseOutput {
  readonly Topics?: readonly TopicOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface PublishResponseOutput {
  readonly MessageId?: string | null | undefined;
  readonly SequenceNumber?: string | null | undefined;
}

interface SubscribeResponseOutput {
  readonly SubscriptionArn?: string | null | undefined;
}

interface SubscriptionOutput {
  readonly SubscriptionArn?: string | null | undefined;
  readonly Owner?: string | null | undefined;
  readonly Protocol?: string | null | undefined;
  readonly Endpoint?: string | null | undefined;
  readonly TopicArn?: string | null | undefined;
}

interface TopicOutput {
  readonly TopicArn?: string | null | undefined;
}
