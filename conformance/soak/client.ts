import assert from "node:assert/strict";
import { Agent, request as httpRequest } from "node:http";
import { connect, type ClientHttp2Session } from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  ModelInferRequestSchema,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
  type ModelInferResponse,
} from "../../packages/server/src/protocols/kserve-grpc/gen/grpc_service_pb.js";
import { frameMessage, splitMessages } from "../../packages/server/src/protocols/raw-grpc-client.ts";
import { causeOf } from "./documented.ts";

/** A request. Its model returns `values`, possibly with changed signs. */
export interface SoakRequest {
  readonly model: SoakModel;
  readonly id: string;
  readonly values: Float32Array;
}

export interface SoakModel {
  readonly name: string;
  readonly input: string;
  readonly output: string;
  readonly sign: 1 | -1;
  /** True if the model reads from the request what to do. */
  readonly isFaulty: boolean;
}

/** Null for a correct response, else the cause of the error. */
type Outcome = string | null;

const answerTimeoutMs = 120_000;
const service = "/inference.GRPCInferenceService";

/**
 * A client with one connection of each protocol. Each request must get exactly one response, a correct one or a
 * documented error.
 */
export class SoakClient implements Disposable {
  readonly #httpPort: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #session: ClientHttp2Session;

  constructor(ports: { readonly httpPort: number; readonly grpcPort: number }) {
    this.#httpPort = ports.httpPort;
    this.#session = connect(`http://127.0.0.1:${ports.grpcPort}`);
    // Each call reports its own failure.
    this.#session.on("error", () => {});
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
    this.#session.destroy();
  }

  async overHttp(question: SoakRequest): Promise<Outcome> {
    const { model, id, values } = question;
    const tail = bytesOf(values);
    const header = Buffer.from(
      JSON.stringify({
        id,
        parameters: { binary_data_output: true },
        inputs: [
          ...(model.isFaulty ? [{ name: "DO", datatype: "BYTES", shape: [1], data: ["echo"] }] : []),
          {
            name: model.input,
            datatype: "FP32",
            shape: [values.length],
            parameters: { binary_data_size: tail.length },
          },
        ],
        outputs: [{ name: model.output, parameters: { binary_data: true } }],
      }),
    );
    const result = await this.#post(`/v2/models/${model.name}/infer`, header, tail);
    if (result.status !== 200) {
      const { error } = JSON.parse(result.body.toString()) as { error: string };
      return causeOf("http", result.status, error);
    }
    const reported = JSON.parse(result.body.toString("utf8", 0, result.headerBytes)) as { id: string };
    assert.equal(reported.id, id);
    assertRight(question, result.body.subarray(result.headerBytes));
    return null;
  }

  async overGrpc(question: SoakRequest): Promise<Outcome> {
    const { messages, status, text } = await this.#call("ModelInfer", [question]);
    if (status !== 0) {
      assert.equal(messages.length, 0);
      return causeOf("grpc", status, text);
    }
    assert.equal(messages.length, 1, "one response to one request");
    assertResponses(question, fromBinary(ModelInferResponseSchema, messages[0]!));
    return null;
  }

  /** Sends the requests on one stream, and expects as many responses in the same order. */
  async overStream(questions: readonly SoakRequest[]): Promise<Outcome[]> {
    const { messages, status, text } = await this.#call("ModelStreamInfer", questions);
    assert.equal(status, 0, `a stream ended with ${status}: ${text}`);
    assert.equal(messages.length, questions.length, "as many responses as requests in the stream");
    return questions.map((question, index) => {
      const { errorMessage, inferResponse } = fromBinary(ModelStreamInferResponseSchema, messages[index]!);
      if (errorMessage !== "") return causeOf("grpc", null, errorMessage);
      assert.ok(inferResponse);
      assertResponses(question, inferResponse);
      return null;
    });
  }

  #post(path: string, header: Buffer, tail: Buffer) {
    return new Promise<{ status: number; headerBytes: number; body: Buffer }>((resolve, reject) => {
      const headers = {
        "content-length": header.length + tail.length,
        "inference-header-content-length": header.length,
      };
      const where = { host: "127.0.0.1", port: this.#httpPort, path, method: "POST", agent: this.#agent, headers };
      const sent = httpRequest({ ...where, signal: AbortSignal.timeout(answerTimeoutMs) }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
        response.on("end", () => {
          const headerBytes = Number(response.headers["inference-header-content-length"] ?? 0);
          resolve({ status: response.statusCode ?? 0, headerBytes, body: Buffer.concat(chunks) });
        });
      });
      sent.on("error", reject);
      sent.write(header);
      sent.end(tail);
    });
  }

  #call(method: string, questions: readonly SoakRequest[]) {
    return new Promise<{ messages: Buffer[]; status: number; text: string }>((resolve, reject) => {
      const stream = this.#session.request({
        ":method": "POST",
        ":path": `${service}/${method}`,
        "content-type": "application/grpc",
        te: "trailers",
      });
      const chunks: Buffer[] = [];
      let end: Record<string, unknown> | null = null;
      stream.setTimeout(answerTimeoutMs, () => reject(new Error(`no response to ${method} in ${answerTimeoutMs} ms`)));
      stream.on("response", (headers) => {
        if (headers["grpc-status"] !== undefined) end = headers;
      });
      stream.on("trailers", (trailers) => (end = trailers));
      stream.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
      stream.on("close", () => {
        if (end === null) return reject(new Error(`${method} ended without a status`));
        const text = decodeURIComponent((end["grpc-message"] as string | undefined) ?? "");
        resolve({ messages: splitMessages(Buffer.concat(chunks)), status: Number(end["grpc-status"]), text });
      });
      for (const question of questions) stream.write(frameMessage(encode(question)));
      stream.end();
    });
  }
}

function encode({ model, id, values }: SoakRequest): Uint8Array {
  const reported = Buffer.from("\x04\0\0\0echo", "latin1");
  const value = { name: model.input, datatype: "FP32", shape: [BigInt(values.length)] };
  const init = {
    modelName: model.name,
    id,
    inputs: [...(model.isFaulty ? [{ name: "DO", datatype: "BYTES", shape: [1n] }] : []), value],
    outputs: [{ name: model.output }],
    rawInputContents: [...(model.isFaulty ? [reported] : []), bytesOf(values)],
  };
  return toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, init));
}

function assertResponses(question: SoakRequest, response: ModelInferResponse): void {
  assert.equal(response.id, question.id);
  assert.equal(response.rawOutputContents.length, 1);
  assertRight(question, Buffer.from(response.rawOutputContents[0]!));
}

function assertRight({ model, values }: SoakRequest, bytes: Buffer): void {
  const expected = model.sign === 1 ? values : values.map((value) => -value);
  assert.ok(bytes.equals(bytesOf(expected)), `a response that differs from that of ${model.name}`);
}

function bytesOf(values: Float32Array): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}
