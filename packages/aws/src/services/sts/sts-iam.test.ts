import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import {
  AttachRolePolicyCommand,
  CreatePolicyCommand,
  GetPolicyCommand,
  CreateRoleCommand,
  DeletePolicyCommand,
  DeleteRoleCommand,
  DetachRolePolicyCommand,
  GetRoleCommand,
  GetRolePolicyCommand,
  IAMClient,
  ListAttachedRolePoliciesCommand,
  PutRolePolicyCommand,
  SimulatePrincipalPolicyCommand,
} from "@aws-sdk/client-iam";
import { AssumeRoleCommand, GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";
import { silentLogger } from "@galatea/base";
import { MemoryDocuments } from "@galatea/hosting/records";
import { ensureRole, iamService, openIdentityStore } from "../iam/index.ts";
import { ManualClock, serveServices } from "../service-fixtures.ts";
import { StsSessions, stsService } from "./index.ts";

const trust = JSON.stringify({ Version: "2012-10-17", Statement: [{ Effect: "Allow", Action: "sts:AssumeRole" }] });

async function served(sessionsMax = 10) {
  const clock = new ManualClock();
  const store = openIdentityStore(new MemoryDocuments(), silentLogger);
  const iam = { store, clock, randomBytes };
  await ensureRole(iam, "111122223333", "GalateaRole");
  const sessions = new StsSessions({ clock, randomBytes, sessionsMax });
  const executionRole = { roleName: "GalateaRole", sessionName: "galatea" };
  const sts = stsService({ sessions, identities: store, executionRole });
  const root = {
    accessKeyId: "AKIDEXAMPLE",
    secretAccessKey: "secret",
    sessionToken: null,
    accountId: "111122223333",
    expiresMs: null,
  };
  const gateway = await serveServices([iamService({ iam }), sts], (accessKeyId) =>
    accessKeyId === root.accessKeyId ? root : sessions.credential(accessKeyId),
  );
  const clients = { iam: new IAMClient(gateway.client), sts: new STSClient(gateway.client) };
  return {
    ...clients,
    gateway,
    clock,
    async [Symbol.asyncDispose]() {
      clients.iam.destroy();
      clients.sts.destroy();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

test("GetCallerIdentity returns an assumed role that IAM knows, as the SDK's get_execution_role() requires", async () => {
  await using at = await served();
  const { Arn, Account, UserId } = await at.sts.send(new GetCallerIdentityCommand({}));
  assert.deepEqual([Arn, Account], ["arn:aws:sts::111122223333:assumed-role/GalateaRole/galatea", "111122223333"]);
  const { Role } = await at.iam.send(new GetRoleCommand({ RoleName: "GalateaRole" }));
  assert.equal(Role?.Arn, "arn:aws:iam::111122223333:role/GalateaRole");
  assert.equal(UserId, `${Role?.RoleId}:galatea`);
  assert.match(Role?.RoleId ?? "", /^AROA[A-Z2-7]{17}$/);
});

test("AssumeRole returns credentials that sign requests, name the role and expire; an unknown role is denied", async () => {
  await using at = await served();
  const role = { RoleName: "tenant", Path: "/teams/", AssumeRolePolicyDocument: trust };
  const { Role } = await at.iam.send(new CreateRoleCommand(role));
  const assume = (RoleArn: string) => at.sts.send(new AssumeRoleCommand({ RoleArn, RoleSessionName: "session" }));
  const { Credentials, AssumedRoleUser } = await assume(Role?.Arn ?? "");
  assert.equal(AssumedRoleUser?.Arn, "arn:aws:sts::111122223333:assumed-role/tenant/session");
  assert.equal(Credentials?.Expiration?.getTime(), at.clock.nowMs + 3_600_000);
  const {
    AccessKeyId: accessKeyId = "",
    SecretAccessKey: secretAccessKey = "",
    SessionToken: sessionToken = "",
  } = Credentials ?? {};
  const tenant = new STSClient({ ...at.gateway.client, credentials: { accessKeyId, secretAccessKey, sessionToken } });
  assert.equal((await tenant.send(new GetCallerIdentityCommand({}))).Arn, AssumedRoleUser?.Arn);
  tenant.destroy();
  await assert.rejects(assume("arn:aws:iam::111122223333:role/nobody"), {
    name: "AccessDenied",
    message:
      "User: arn:aws:sts::111122223333:assumed-role/GalateaRole/galatea is not authorized to perform: sts:AssumeRole on resource: arn:aws:iam::111122223333:role/nobody",
  });
});

test("session policies and permissions boundaries are rejected, because they cannot be enforced", async () => {
  await using at = await served();
  const requested = { RoleArn: "arn:aws:iam::111122223333:role/GalateaRole", RoleSessionName: "session" };
  const wanted = (member: string) => ({ message: `${member} is not supported by this platform yet.` });
  const Policy = JSON.stringify({ Version: "2012-10-17", Statement: [{ Effect: "Deny", Action: "*", Resource: "*" }] });
  await assert.rejects(at.sts.send(new AssumeRoleCommand({ ...requested, Policy })), wanted(`Policy ${Policy}`));
  const PolicyArns = [{ arn: "arn:aws:iam::aws:policy/ReadOnlyAccess" }];
  await assert.rejects(at.sts.send(new AssumeRoleCommand({ ...requested, PolicyArns })), wanted("PolicyArns"));
  const PermissionsBoundary = "arn:aws:iam::aws:policy/ReadOnlyAccess";
  const role = { RoleName: "bounded", AssumeRolePolicyDocument: trust, PermissionsBoundary };
  await assert.rejects(at.iam.send(new CreateRoleCommand(role)), wanted(`PermissionsBoundary ${PermissionsBoundary}`));
  await assert.rejects(at.iam.send(new GetRoleCommand({ RoleName: "bounded" })), { name: "NoSuchEntityException" });
});

test("when the limit of sessions is reached, a new session replaces the one that expires first", async () => {
  await using at = await served(2);
  const arn = "arn:aws:iam::111122223333:role/GalateaRole";
  const input = [];
  for (const DurationSeconds of [3600, 900, 1800]) {
    input.push(
      (await at.sts.send(new AssumeRoleCommand({ RoleArn: arn, RoleSessionName: "session", DurationSeconds })))
        .Credentials,
    );
  }
  const works = [];
  for (const each of input) {
    const credentials = {
      accessKeyId: each?.AccessKeyId ?? "",
      secretAccessKey: each?.SecretAccessKey ?? "",
      sessionToken: each?.SessionToken ?? "",
    };
    const client = new STSClient({ ...at.gateway.client, credentials });
    works.push(
      await client.send(new GetCallerIdentityCommand({})).then(
        () => true,
        () => false,
      ),
    );
    client.destroy();
  }
  assert.deepEqual(works, [true, false, true]);
});

test('SimulatePrincipalPolicy returns "allowed" for every action and resource, in pages', async () => {
  await using at = await served();
  const { Role } = await at.iam.send(new CreateRoleCommand({ RoleName: "builder", AssumeRolePolicyDocument: trust }));
  const requested = {
    PolicySourceArn: Role?.Arn ?? "",
    ActionNames: ["sagemaker:CreateModel", "s3:GetObject", "logs:PutLogEvents"],
    ResourceArns: ["arn:aws:s3:::a", "arn:aws:s3:::b"],
  };
  const first = await at.iam.send(new SimulatePrincipalPolicyCommand({ ...requested, MaxItems: 4 }));
  assert.equal(first.IsTruncated, true);
  const rest = await at.iam.send(new SimulatePrincipalPolicyCommand({ ...requested, Marker: first.Marker }));
  assert.equal(rest.IsTruncated, false);
  const reported = [...(first.EvaluationResults ?? []), ...(rest.EvaluationResults ?? [])];
  assert.deepEqual(
    reported.map(({ EvalActionName, EvalResourceName, EvalDecision }) => [
      EvalActionName,
      EvalResourceName,
      EvalDecision,
    ]),
    requested.ActionNames.flatMap((action) => requested.ResourceArns.map((resource) => [action, resource, "allowed"])),
  );
  const other = { ...requested, PolicySourceArn: "arn:aws:iam::111122223333:role/nobody" };
  await assert.rejects(at.iam.send(new SimulatePrincipalPolicyCommand(other)), { name: "NoSuchEntityException" });
});

test("roles and policies are created, changed and deleted with IAM's rules, codes and texts", async () => {
  await using at = await served();
  const { iam } = at;
  const RoleName = "r";
  await assert.rejects(iam.send(new GetRoleCommand({ RoleName })), {
    name: "NoSuchEntityException",
    message: "The role with name r cannot be found.",
  });
  await assert.rejects(iam.send(new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument: "{" })), {
    name: "MalformedPolicyDocumentException",
  });
  const { Role } = await iam.send(new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument: trust }));
  assert.equal(decodeURIComponent(Role?.AssumeRolePolicyDocument ?? ""), trust);
  await assert.rejects(iam.send(new CreateRoleCommand({ RoleName: "R", AssumeRolePolicyDocument: trust })), {
    name: "EntityAlreadyExistsException",
    message: "Role with name R already exists.",
  });
  const Tags = [{ Key: "team", Value: "a" }];
  const { Policy } = await iam.send(new CreatePolicyCommand({ PolicyName: "p", PolicyDocument: trust, Tags }));
  assert.deepEqual((await iam.send(new GetPolicyCommand({ PolicyArn: Policy?.Arn ?? "" }))).Policy?.Tags, Tags);
  const PolicyArn = Policy?.Arn ?? "";
  await iam.send(new AttachRolePolicyCommand({ RoleName, PolicyArn }));
  await iam.send(
    new AttachRolePolicyCommand({ RoleName, PolicyArn: "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess" }),
  );
  await assert.rejects(iam.send(new AttachRolePolicyCommand({ RoleName, PolicyArn: `${PolicyArn}x` })), {
    message: `Policy ${PolicyArn}x does not exist or is not attachable.`,
  });
  const attached = await iam.send(new ListAttachedRolePoliciesCommand({ RoleName }));
  assert.deepEqual(
    attached.AttachedPolicies?.map(({ PolicyName }) => PolicyName),
    ["p", "AmazonSageMakerFullAccess"],
  );
  await assert.rejects(iam.send(new DeletePolicyCommand({ PolicyArn })), { name: "DeleteConflictException" });
  await iam.send(new PutRolePolicyCommand({ RoleName, PolicyName: "inline", PolicyDocument: trust }));
  const inline = await iam.send(new GetRolePolicyCommand({ RoleName, PolicyName: "inline" }));
  assert.equal(decodeURIComponent(inline.PolicyDocument ?? ""), trust);
  await assert.rejects(iam.send(new DeleteRoleCommand({ RoleName })), {
    name: "DeleteConflictException",
    message: "Cannot delete entity, must detach all policies first.",
  });
  await iam.send(new DetachRolePolicyCommand({ RoleName, PolicyArn }));
  await iam.send(new DeletePolicyCommand({ PolicyArn }));
});
