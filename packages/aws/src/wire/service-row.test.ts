import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { AwsError, silentLogger } from "@galatea/base";
import type { ServiceModel } from "../spec/index.ts";
import { sendAwsError } from "./send-response.ts";
import { createGateway } from "./gateway.ts";
import {
  openedCall,
  type ModelledService,
  type OperationRows,
  type RawExchange,
  type RawOperationRow,
  type RawService,
  type ServiceRow,
} from "./service-row.ts";
import { verifiedRequest } from "./body.ts";

// Two services that the platform does not have. The gateway knows them only through these rows.

const parcelsModel: ServiceModel = {
  service: "parcels",
  apiVersion: "2026-11-22",
  protocols: ["json", "query"],
  jsonVersion: "1.0",
  targetPrefix: "Parcels_20261122",
  operations: {
    SendParcel: { method: "POST", uri: "/", input: "SendInput", output: "SendOutput", resultWrapper: "SendResult" },
  },
  otherOperations: ["LoseParcel"],
  errors: { TooHeavy: { status: 422 } },
  shapes: {
    SendInput: {
      type: "structure",
      required: ["Name", "Grams"],
      members: { Name: { shape: "N" }, Grams: { shape: "G" } },
    },
    SendOutput: { type: "structure", members: { Number: { shape: "G" } } },
    TooHeavy: { type: "structure", members: { Message: { shape: "N" } } },
    N: { type: "string", pattern: "[a-z]+" },
    G: { type: "integer", min: 1 },
  },
};

interface ParcelOperations {
  readonly SendParcel: {
    readonly input: { readonly Name: string; readonly Grams: number };
    readonly output: { readonly Number?: number };
  };
}

const parcelOperations: OperationRows<ParcelOperations> = {
  SendParcel: {
    resource: ({ Name }, { accountId }) => `arn:aws:parcels::${accountId}:parcel/${Name}`,
    handle: ({ Grams }) =>
      Grams > 1000 ? Promise.reject(new AwsError("TooHeavy", "Too heavy.")) : Promise.resolve({ Number: Grams + 1 }),
  },
};

const parcels: ModelledService = {
  kind: "modelled",
  model: parcelsModel,
  scope: "parcel-post",
  iamPrefix: "parcels",
  validationCodes: { json: "BadParcel", query: "BadParcelForm" },
  operations: parcelOperations,
};

const pipesModel: ServiceModel = {
  ...parcelsModel,
  service: "pipes",
  protocols: ["rest-json"],
  operations: { Flow: { method: "POST", uri: "/pipes/{Name}/flow" } },
};

const flow: RawOperationRow<RawExchange> = {
  action: "pipes:Flow",
  resource: ({ request }) => `arn:aws:pipes:::${request.url}`,
  handle: async ({ request, response }) => void request.pipe(response),
};

const pipes: RawService = {
  kind: "raw",
  protocol: "rest-json",
  model: pipesModel,
  // The scope differs from the service's name, as for sagemaker-runtime, whose scope is `sagemaker`.
  scope: "parcel-post",
  operations: { Flow: flow },
  setHeaders: (response, requestId) => void response.setHeader("x-pipe-id", requestId),
  open: async (exchange) =>
    openedCall(flow, { ...exchange, request: await verifiedRequest(exchange, 1000, "parcel-post") }),
  sendError: (exchange, thrown) =>
    sendAwsError(
      {
        ...exchange,
        errors: { model: pipesModel, validationCodes: parcels.validationCodes },
        protocol: "rest-json",
        operation: "pipes",
      },
      thrown,
    ),
};

interface RequestedCall {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The service name in the signature. */
  readonly scope?: string;
  /** Headers that are added after signing. */
  readonly unsigned?: Record<string, string>;
}

async function served(services: readonly ServiceRow[], permitted?: (action: string, resource: string) => boolean) {
  const server = createServer();
  const credential = { accessKeyId: "AKID", secretAccessKey: "secret", sessionToken: null, expiresMs: null };
  createGateway({
    services,
    credentials: permitted === undefined ? null : () => ({ ...credential, accountId: "111122223333" }),
    isAllowed: (_, action, resource) => permitted?.(action, resource) ?? true,
    regionDefault: "us-east-1",
    accountIdDefault: "000000000000",
    logger: silentLogger,
  }).attach(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    async ask({ path = "/", headers = {}, body = "", scope = "parcel-post", unsigned = {} }: RequestedCall) {
      const signed = permitted === undefined ? headers : signature({ host, path, body, scope, headers });
      const response = await fetch(`http://${host}${path}`, {
        method: "POST",
        headers: { ...signed, ...unsigned },
        body,
      });
      return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
    },
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

interface Signed extends Required<Pick<RequestedCall, "path" | "headers" | "body" | "scope">> {
  readonly host: string;
}

/** Returns the headers of a request with a signature that covers all of them. */
function signature(signed: Signed): Record<string, string> {
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const scope = [time.slice(0, 8), "us-east-1", signed.scope, "aws4_request"];
  const headers: Record<string, string> = { ...signed.headers, host: signed.host, "x-amz-date": time };
  const names = Object.keys(headers).toSorted();
  const lines = names.map((name) => `${name}:${headers[name]}\n`).join("");
  const canonical = `POST\n${signed.path}\n\n${lines}\n${names.join(";")}\n${hash(signed.body)}`;
  const key = scope.reduce<string | Buffer>((secret, segment) => hmac(secret, segment), "AWS4secret");
  const proof = hmac(key, `AWS4-HMAC-SHA256\n${time}\n${scope.join("/")}\n${hash(canonical)}`).toString("hex");
  return {
    ...signed.headers,
    "x-amz-date": time,
    authorization: `AWS4-HMAC-SHA256 Credential=AKID/${scope.join("/")}, SignedHeaders=${names.join(";")}, Signature=${proof}`,
  };
}

const target = (operation: string) => ({ "x-amz-target": `Parcels_20261122.${operation}` });
const document = (bytes: Buffer) => JSON.parse(bytes.toString()) as Record<string, unknown>;

test("a service is found by the target prefix, the API version and the paths of its row's model", async () => {
  await using gateway = await served([parcels, pipes]);
  const json = await gateway.ask({ headers: target("SendParcel"), body: '{"Name":"a","Grams":5}' });
  assert.deepEqual([json.status, document(json.bytes)], [200, { Number: 6 }]);
  assert.equal(json.headers.get("content-type"), "application/x-amz-json-1.0");
  const form = await gateway.ask({
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "Action=SendParcel&Version=2026-11-22&Name=a&Grams=7",
  });
  assert.match(form.bytes.toString(), /<SendParcelResponse><SendResult><Number>8<\/Number><\/SendResult>/);
  const raw = await gateway.ask({ path: "/pipes/p/flow", body: "through" });
  assert.equal(raw.bytes.toString(), "through");
  assert.ok(raw.headers.has("x-pipe-id"));
});

test("a service's errors have the codes of its table row and model, in the protocol of the request", async () => {
  await using gateway = await served([parcels, pipes]);
  const send = (body: string) => gateway.ask({ headers: target("SendParcel"), body });
  const invalid = await send('{"Name":"UPPER","Grams":0}');
  assert.equal(document(invalid.bytes)["__type"], "BadParcel");
  assert.match(String(document(invalid.bytes)["message"]), /^2 validation errors detected: Value 'UPPER' at 'name'/);
  const heavy = await send('{"Name":"a","Grams":1001}');
  assert.deepEqual([heavy.status, document(heavy.bytes)], [422, { __type: "TooHeavy", Message: "Too heavy." }]);
  const form = await gateway.ask({
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "Action=SendParcel&Version=2026-11-22&Name=a",
  });
  assert.match(form.bytes.toString(), /<Error><Type>Sender<\/Type><Code>BadParcelForm<\/Code>/);
  const known = await gateway.ask({ headers: target("LoseParcel"), body: "{}" });
  assert.match(known.bytes.toString(), /The operation parcels\.LoseParcel is not implemented by this server/);
  const rpc = { "smithy-protocol": "rpc-v2-cbor" };
  const cbor = await gateway.ask({ path: "/service/Parcels_20261122/operation/SendParcel", headers: rpc });
  assert.deepEqual([cbor.status, cbor.headers.get("content-type")], [415, "application/cbor"]);
  assert.equal(cbor.headers.get("smithy-protocol"), "rpc-v2-cbor");
  // A CBOR map with two entries. The first one is the error's type.
  assert.equal(cbor.bytes.subarray(0, 28).toString("latin1"), "\xa2\x66__type\x73UnsupportedProtocol");
});

test("permissions are checked with the action and resource of the operation's row, from members and from bodies", async () => {
  const requested: string[] = [];
  const scoped = await served([parcels, pipes], (action, resource) => {
    requested.push(`${action} ${resource}`);
    return resource.endsWith("/mine") || resource.endsWith("/mine/flow");
  });
  await using gateway = scoped;
  const send = (name: string) => gateway.ask({ headers: target("SendParcel"), body: `{"Name":"${name}","Grams":1}` });
  assert.equal((await send("mine")).status, 200);
  const denied = await send("theirs");
  assert.deepEqual([denied.status, document(denied.bytes)["__type"]], [403, "AccessDeniedException"]);
  assert.equal((await gateway.ask({ path: "/pipes/mine/flow", body: "x" })).bytes.toString(), "x");
  assert.equal((await gateway.ask({ path: "/pipes/theirs/flow", body: "x" })).status, 403);
  assert.deepEqual(requested, [
    "parcels:SendParcel arn:aws:parcels::111122223333:parcel/mine",
    "parcels:SendParcel arn:aws:parcels::111122223333:parcel/theirs",
    "pipes:Flow arn:aws:pipes:::/pipes/mine/flow",
    "pipes:Flow arn:aws:pipes:::/pipes/theirs/flow",
  ]);
});

test("an operation whose row names no resource needs permission for all resources", async () => {
  const requested: string[] = [];
  const { handle } = parcelOperations.SendParcel;
  await using gateway = await served([{ ...parcels, operations: { SendParcel: { handle } } }], (action, resource) => {
    requested.push(`${action} ${resource}`);
    return true;
  });
  await gateway.ask({ headers: target("SendParcel"), body: '{"Name":"mine","Grams":1}' });
  assert.deepEqual(requested, ["parcels:SendParcel *"]);
});

test("a service without a table row is unknown to the platform", async () => {
  await using gateway = await served([pipes]);
  const response = await gateway.ask({ headers: target("SendParcel"), body: "{}" });
  assert.match(response.bytes.toString(), /The service 'Parcels_20261122' is not part of this server/);
});

test("permissions that a calling mode needs are checked before the operation runs", async () => {
  const requested: string[] = [];
  const open: RawService["open"] = async (exchange) => ({
    ...(await pipes.open(exchange)),
    additionalActions: ["pipes:UseTaps"],
  });
  const mayFlow = (action: string, resource: string) => {
    requested.push(`${action} ${resource}`);
    return action === "pipes:Flow";
  };
  await using gateway = await served([{ ...pipes, open }], mayFlow);
  const refused = await gateway.ask({ path: "/pipes/p/flow", body: "through" });
  assert.equal(refused.status, 403);
  assert.match(String(document(refused.bytes)["message"]), /not authorized to perform: pipes:UseTaps on resource: \*$/);
  assert.deepEqual(requested, ["pipes:UseTaps *"]);
});

test("an operation does not run if the signature is for another operation or service", async () => {
  await using gateway = await served([parcels, pipes], () => true);
  const body = '{"Name":"a","Grams":5}';
  assert.equal((await gateway.ask({ headers: target("SendParcel"), body })).status, 200);
  const renamed = await gateway.ask({ unsigned: target("SendParcel"), body });
  assert.equal(renamed.status, 403);
  assert.deepEqual(document(renamed.bytes), {
    __type: "InvalidSignatureException",
    message: "There were headers present in the request which were not signed: x-amz-target",
  });
  const elsewhere = await gateway.ask({ headers: target("SendParcel"), body, scope: "monitoring" });
  assert.equal(elsewhere.status, 403);
  assert.deepEqual(document(elsewhere.bytes), {
    __type: "InvalidSignatureException",
    message: "Credential should be scoped to correct service: 'parcel-post'.",
  });
});
