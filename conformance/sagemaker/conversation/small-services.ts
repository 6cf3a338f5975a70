import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { CallError, type AwsCalls } from "./client.ts";

const trusts = (Sid: string) =>
  JSON.stringify({
    Version: "2012-10-17",
    Statement: [{ Sid, Effect: "Allow", Principal: { Service: "sagemaker.amazonaws.com" }, Action: "sts:AssumeRole" }],
  });
/**
 * Returns the identifier of the statement in a policy document, which clients return as an object or as encoded text.
 */
const sidOf = (document: unknown) =>
  /"Sid":\s*"(\w*)"/.exec(decodeURIComponent(typeof document === "string" ? document : JSON.stringify(document)))?.[1];
const mayRead = JSON.stringify({
  Version: "2012-10-17",
  Statement: [{ Effect: "Allow", Action: "s3:GetObject", Resource: "*" }],
});

/** Calls each operation of STS and IAM. */
export async function identities({ call }: AwsCalls, name: string): Promise<void> {
  const { Account: account } = await call("sts", "GetCallerIdentity", {});
  assert.match(account, /^\d{12}$/);
  const { Role: role } = await call("iam", "CreateRole", { RoleName: name, AssumeRolePolicyDocument: trusts("made") });
  const found = await call("iam", "GetRole", { RoleName: name });
  assert.deepEqual([found["Role"].Arn, sidOf(found["Role"].AssumeRolePolicyDocument)], [role.Arn, "made"]);
  const { Roles: roles } = await call("iam", "ListRoles", {});
  assert(roles.some((each: { RoleName: string }) => each.RoleName === name));
  await call("iam", "UpdateAssumeRolePolicy", { RoleName: name, PolicyDocument: trusts("changed") });
  const changed = await call("iam", "GetRole", { RoleName: name });
  assert.equal(sidOf(changed["Role"].AssumeRolePolicyDocument), "changed");

  const own = { RoleName: name, PolicyName: "own" };
  await call("iam", "PutRolePolicy", { ...own, PolicyDocument: mayRead });
  assert.deepEqual((await call("iam", "ListRolePolicies", { RoleName: name }))["PolicyNames"], ["own"]);
  assert.equal((await call("iam", "GetRolePolicy", own))["PolicyName"], "own");
  await call("iam", "DeleteRolePolicy", own);
  assert.deepEqual((await call("iam", "ListRolePolicies", { RoleName: name }))["PolicyNames"], []);

  const { Policy: policy } = await call("iam", "CreatePolicy", { PolicyName: name, PolicyDocument: mayRead });
  const attached = { RoleName: name, PolicyArn: policy.Arn };
  assert.equal((await call("iam", "GetPolicy", { PolicyArn: policy.Arn }))["Policy"].PolicyName, name);
  await call("iam", "AttachRolePolicy", attached);
  const { AttachedPolicies: policies } = await call("iam", "ListAttachedRolePolicies", { RoleName: name });
  assert.deepEqual(policies, [{ PolicyName: name, PolicyArn: policy.Arn }]);
  const requested = { PolicySourceArn: role.Arn, ActionNames: ["s3:GetObject"] };
  const { EvaluationResults: decided } = await call("iam", "SimulatePrincipalPolicy", requested);
  assert.equal(decided[0].EvalDecision, "allowed");

  const lent = await call("sts", "AssumeRole", { RoleArn: role.Arn, RoleSessionName: "here" });
  const { AccessKeyId: key } = lent["Credentials"];
  assert.equal((await call("sts", "GetAccessKeyInfo", { AccessKeyId: key }))["Account"], account);
  assert.match((await call("sts", "GetSessionToken", {}))["Credentials"].AccessKeyId, /^ASIA/);

  await call("iam", "DetachRolePolicy", attached);
  assert.deepEqual((await call("iam", "ListAttachedRolePolicies", { RoleName: name }))["AttachedPolicies"], []);
  await call("iam", "DeletePolicy", { PolicyArn: policy.Arn });
  await assert.rejects(call("iam", "GetPolicy", { PolicyArn: policy.Arn }), /was not found/);
  await call("iam", "DeleteRole", { RoleName: name });
  await assert.rejects(call("iam", "GetRole", { RoleName: name }), /cannot be found/);
}

/** Calls each operation of SNS, with an HTTP endpoint that receives the token and the messages. */
export async function topics({ call }: AwsCalls, name: string): Promise<void> {
  await using endpoint = await MessagesReceived.open();
  const { TopicArn: arn } = await call("sns", "CreateTopic", { Name: name });
  const { Topics: all } = await call("sns", "ListTopics", {});
  assert(all.some((each: { TopicArn: string }) => each.TopicArn === arn));
  await call("sns", "SetTopicAttributes", { TopicArn: arn, AttributeName: "DisplayName", AttributeValue: "Told" });
  assert.equal((await call("sns", "GetTopicAttributes", { TopicArn: arn }))["Attributes"].DisplayName, "Told");

  await call("sns", "Subscribe", { TopicArn: arn, Protocol: "http", Endpoint: endpoint.url });
  const { Token: token } = await endpoint.next();
  const own = await call("sns", "ConfirmSubscription", { TopicArn: arn, Token: token });
  const subscription = { SubscriptionArn: own["SubscriptionArn"] };
  const { Subscriptions: listed } = await call("sns", "ListSubscriptions", {});
  assert(listed.some((each: { SubscriptionArn: string }) => each.SubscriptionArn === subscription.SubscriptionArn));
  const { Subscriptions: of } = await call("sns", "ListSubscriptionsByTopic", { TopicArn: arn });
  assert.equal(of[0].SubscriptionArn, subscription.SubscriptionArn);
  for (const AttributeValue of ["true", "false"]) {
    const raw = { AttributeName: "RawMessageDelivery", AttributeValue };
    await call("sns", "SetSubscriptionAttributes", { ...subscription, ...raw });
    const { Attributes: attributes } = await call("sns", "GetSubscriptionAttributes", subscription);
    assert.equal(attributes.RawMessageDelivery, AttributeValue);
  }

  const { MessageId: id } = await call("sns", "Publish", { TopicArn: arn, Message: "it", Subject: "Hear" });
  const message = await endpoint.next();
  assert.deepEqual([message["MessageId"], message["Message"], message["Subject"]], [id, "it", "Hear"]);
  await call("sns", "Unsubscribe", subscription);
  assert.deepEqual((await call("sns", "ListSubscriptionsByTopic", { TopicArn: arn }))["Subscriptions"], []);
  await call("sns", "DeleteTopic", { TopicArn: arn });
  await assert.rejects(call("sns", "Publish", { TopicArn: arn, Message: "x" }), (error) => {
    assert(error instanceof CallError);
    return error.message === "Topic does not exist" && /^NotFound(Exception)?$/.test(error.code);
  });
}

/** An HTTP endpoint that receives messages of topics. */
class MessagesReceived implements AsyncDisposable {
  readonly url: string;
  readonly #server: ReturnType<typeof createServer>;
  readonly #arrived: Record<string, unknown>[] = [];
  #wake = () => {};

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    server.on("request", (request, response) => {
      void json(request).then((message) => {
        response.end();
        this.#arrived.push(message as Record<string, unknown>);
        this.#wake();
      });
    });
  }

  static async open(): Promise<MessagesReceived> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new MessagesReceived(server);
  }

  async next(): Promise<Record<string, unknown>> {
    for (;;) {
      const message = this.#arrived.shift();
      if (message !== undefined) return message;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
