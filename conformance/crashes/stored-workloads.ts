import assert from "node:assert/strict";
import {
  DeleteScheduledActionCommand,
  DescribeScheduledActionsCommand,
  PutScheduledActionCommand,
} from "@aws-sdk/client-application-auto-scaling";
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { InvokeEndpointAsyncCommand } from "@aws-sdk/client-sagemaker-runtime";
import { bucket, orNull, pause, type Clients, type Workload } from "./clients.ts";
import { responseOf, AcknowledgedValue } from "./acknowledged-value.ts";

type Random = () => number;

/** Resolves with the text of an object, or with null if it does not exist. */
async function textOf({ s3 }: Clients, key: string): Promise<string | null> {
  const found = await responseOf(orNull(s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }))));
  return found === null ? null : await responseOf(found.Body?.transformToString() ?? Promise.resolve(""));
}

/** Puts, overwrites and deletes objects. */
export class ObjectWorkload implements Workload {
  readonly #random: Random;
  /** For each object the number of repetitions of its letter in its text; -1 if it does not exist. */
  readonly #objects = ["a", "b", "c"].map((key) => [key, new AcknowledgedValue(`the object ${key}`, -1)] as const);

  constructor(random: Random) {
    this.#random = random;
  }

  begin(clients: Clients): Promise<void> {
    return this.check(clients);
  }

  async step({ s3 }: Clients): Promise<void> {
    const [key, known] = this.#objects[Math.floor(this.#random() * this.#objects.length)] ?? assert.fail();
    const named = { Bucket: bucket, Key: `objects/${key}` };
    if (this.#random() < 0.2) return await known.write(-1, () => s3.send(new DeleteObjectCommand(named)));
    const length = Math.floor(this.#random() ** 6 * 2_000_000);
    await known.write(length, () => s3.send(new PutObjectCommand({ ...named, Body: Buffer.from(key.repeat(length)) })));
  }

  async check(clients: Clients): Promise<void> {
    for (const [key, known] of this.#objects) {
      const text = await textOf(clients, `objects/${key}`);
      assert.ok(text === null || text === key.repeat(text.length), `the object ${key} is incomplete`);
      known.observe(text?.length ?? -1);
    }
  }
}

const partText = (number: number) => `part ${number};`.repeat(number === 1 ? 750_000 : 10);

/** Creates multipart uploads, uploads parts and completes them. Acknowledged parts must survive a kill. */
export class UploadWorkload implements Workload {
  #uploadId: string | null = null;
  readonly #parts = new AcknowledgedValue<readonly string[]>("the parts of the upload", []);
  readonly #completed = new AcknowledgedValue("the completed object", 0);
  #count = 0;

  get #named() {
    return { Bucket: bucket, Key: `uploads/${this.#count}` };
  }

  begin(clients: Clients): Promise<void> {
    return this.check(clients);
  }

  async step({ s3 }: Clients): Promise<void> {
    if (this.#uploadId === null) {
      const named = { Bucket: bucket, Key: `uploads/${this.#count + 1}` };
      const { UploadId: id = "" } = await responseOf(s3.send(new CreateMultipartUploadCommand(named)));
      this.#count += 1;
      this.#uploadId = id;
      return;
    }
    const upload = { ...this.#named, UploadId: this.#uploadId };
    const number = this.#parts.value.length + 1;
    if (number <= 2) {
      const part = { ...upload, PartNumber: number, Body: partText(number) };
      return await this.#parts.write([...this.#parts.value, String(number)], () =>
        s3.send(new UploadPartCommand(part)),
      );
    }
    const { Parts: parts = [] } = await responseOf(s3.send(new ListPartsCommand(upload)));
    const MultipartUpload = { Parts: parts.map(({ PartNumber, ETag }) => ({ PartNumber, ETag })) };
    await this.#completed.write(this.#count, () =>
      s3.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload })),
    );
    await this.#parts.write([], () => Promise.resolve());
    this.#uploadId = null;
  }

  async check(clients: Clients): Promise<void> {
    if (this.#count === 0) return;
    const { s3 } = clients;
    const text = await textOf(clients, this.#named.Key);
    assert.ok(text === null || text === partText(1) + partText(2), "the completed object is torn");
    this.#completed.observe(text === null ? this.#count - 1 : this.#count);
    if (this.#uploadId === null) return;
    const response = s3.send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: this.#named.Key }));
    const ids = ((await responseOf(response)).Uploads ?? []).map(({ UploadId: id }) => id);
    if (text !== null) {
      // The upload was completed, but the response was lost.
      assert.ok(!ids.includes(this.#uploadId), "a completed upload is still listed");
      await this.#parts.write([], () => Promise.resolve());
      this.#uploadId = null;
      return;
    }
    assert.ok(ids.includes(this.#uploadId), "an upload that was acknowledged is lost");
    const upload = { ...this.#named, UploadId: this.#uploadId };
    const { Parts: parts = [] } = await responseOf(s3.send(new ListPartsCommand(upload)));
    this.#parts.observe(parts.map(({ PartNumber: number }) => String(number)));
  }
}

/** Queues asynchronous requests. Each acknowledged request must finally have a result. */
export class AsyncInferenceWorkload implements Workload {
  readonly #endpoint: string;
  readonly #outputs = new Set<string>();
  /** Number of acknowledged requests. */
  count = 0;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  /** Does nothing: queued requests are processed during other operations. */
  begin(): Promise<void> {
    return Promise.resolve();
  }

  async step({ runtime }: Clients): Promise<void> {
    const input = {
      EndpointName: this.#endpoint,
      InputLocation: `s3://${bucket}/question`,
      ContentType: "application/json",
    };
    const { OutputLocation: output = "" } = await responseOf(runtime.send(new InvokeEndpointAsyncCommand(input)));
    this.#outputs.add(output);
    this.count += 1;
    await pause(50);
  }

  async check(clients: Clients): Promise<void> {
    for (const output of this.#outputs) {
      const key = output.replace(`s3://${bucket}/`, "");
      for (let text = await textOf(clients, key); text === null; text = await textOf(clients, key)) await pause(20);
      assert.match((await textOf(clients, key)) ?? "", /"data":\[2\.0\]/);
      this.#outputs.delete(output);
    }
  }
}

/** Puts, changes and deletes scheduled actions of a target. */
export class ScheduledActionWorkload implements Workload {
  readonly #random: Random;
  readonly #target: {
    readonly ServiceNamespace: "sagemaker";
    readonly ResourceId: string;
    readonly ScalableDimension: "sagemaker:variant:DesiredInstanceCount";
  };
  /** For each action its minimum capacity. */
  readonly #actions = ["a", "b"].map(
    (name) => [name, new AcknowledgedValue<number | null>(`the scheduled action ${name}`, null)] as const,
  );

  constructor(resourceId: string, random: Random) {
    this.#random = random;
    this.#target = {
      ServiceNamespace: "sagemaker",
      ResourceId: resourceId,
      ScalableDimension: "sagemaker:variant:DesiredInstanceCount",
    };
  }

  begin(clients: Clients): Promise<void> {
    return this.check(clients);
  }

  async step({ scaling }: Clients): Promise<void> {
    const [name, known] = this.#actions[Math.floor(this.#random() * this.#actions.length)] ?? assert.fail();
    const named = { ...this.#target, ScheduledActionName: name };
    if (known.value !== null && this.#random() < 0.4) {
      await known.write(null, () => scaling.send(new DeleteScheduledActionCommand(named)));
    } else {
      const MinCapacity = 1 + Math.floor(this.#random() * 99);
      const action = { Schedule: "at(2100-01-01T00:00:00)", ScalableTargetAction: { MinCapacity, MaxCapacity: 100 } };
      await known.write(MinCapacity, () => scaling.send(new PutScheduledActionCommand({ ...named, ...action })));
    }
    await pause(20);
  }

  async check({ scaling }: Clients): Promise<void> {
    const response = scaling.send(new DescribeScheduledActionsCommand(this.#target));
    const { ScheduledActions: found = [] } = await responseOf(response);
    for (const [name, known] of this.#actions) {
      const action = found.find((each) => each.ScheduledActionName === name);
      known.observe(action?.ScalableTargetAction?.MinCapacity ?? null);
    }
  }
}
