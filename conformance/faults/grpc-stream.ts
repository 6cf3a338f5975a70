import { connect } from "node:http2";
import { fromBinary } from "@bufbuild/protobuf";
import {
  GRPCInferenceService,
  ModelStreamInferResponseSchema,
} from "../../packages/server/src/protocols/kserve-grpc/gen/grpc_service_pb.js";
import { frameMessage } from "../../packages/server/src/protocols/raw-grpc-client.ts";
import { inferMessage, rawInput } from "../kserve/grpc-messages.ts";
import { strings } from "../kserve/requests.ts";

/** An open stream to one model. */
export interface OpenStream extends Disposable {
  /** Texts of the responses so far, and errors as `error: <text>`; the last response to a request ends with `, final`. */
  readonly results: readonly string[];
  /** The reason for the end of the stream; null before the end. */
  readonly status: number | null;
  send(code: string): void;
  /** Stops reading, or resumes it. */
  pause(): void;
  resume(): void;
}

export function openStream(grpcPort: number, modelName: string): OpenStream {
  const session = connect(`http://127.0.0.1:${grpcPort}`);
  const method = GRPCInferenceService.method.modelStreamInfer;
  const stream = session.request({
    ":method": "POST",
    ":path": `/${GRPCInferenceService.typeName}/${method.name}`,
    "content-type": "application/grpc",
    te: "trailers",
  });
  const answers: string[] = [];
  let status: number | null = null;
  let rest = Buffer.alloc(0);
  session.on("error", () => {});
  stream.on("error", () => {});
  stream.on("trailers", (trailers) => (status = Number(trailers["grpc-status"])));
  stream.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const end = 5 + rest.readUInt32BE(1);
      answers.push(textOf(rest.subarray(5, end)));
      rest = rest.subarray(end);
    }
  });
  return {
    results: answers,
    get status() {
      return status;
    },
    send: (code) =>
      void stream.write(
        frameMessage(
          inferMessage({
            modelName,
            inputs: [rawInput("CODE", "BYTES", [1])],
            rawInputContents: [strings(code)],
          }),
        ),
      ),
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    [Symbol.dispose]: () => session.destroy(),
  };
}

function textOf(message: Buffer): string {
  const { errorMessage, inferResponse } = fromBinary(ModelStreamInferResponseSchema, message);
  const contents = Buffer.from(inferResponse?.rawOutputContents[0] ?? "");
  const text = errorMessage === "" ? contents.subarray(4, 64).toString() : `error: ${errorMessage}`;
  const isFinal = inferResponse?.parameters["triton_final_response"]?.parameterChoice.value === true;
  return isFinal ? `${text}, final` : text;
}
