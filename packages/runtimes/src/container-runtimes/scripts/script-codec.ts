import { assert, type InferenceError } from "@galatea/base";
import type { ServedModel } from "@galatea/server/engine";
import type { InferenceResponse, ParameterValue } from "@galatea/server/inference";
import type { CallPayload, PayloadCodec, PayloadReply, PayloadRequest } from "@galatea/server/protocols";
import type { Tensor } from "@galatea/server/tensor";
import { responseHeaders } from "./response-headers.ts";

/** Names of the input and the output of a script's model; both are BYTES with one element. */
export const bodyInput = "body";
export const bodyOutput = "answer";
/** Parameters of requests and responses; must match those in `python/galatea_frameworks/toolkit/program.py`. */
const headParameters = {
  contentType: "content_type",
  accept: "accept",
  attributes: "custom_attributes",
  session: "session_id",
} as const;
const statusParameter = "status";
const headersParameter = "headers";
const callKindParameter = { name: "asks", executionParameters: "execution_parameters" } as const;

const attributesHeader = "x-amzn-sagemaker-custom-attributes";
const sessionHeader = "x-amzn-sagemaker-session-id";
const lengthBytes = 4;

/** Passes the body, the content type and the accepted type to a script; returns its body, content type, status and headers. */
export const scriptCodec: PayloadCodec = {
  executionParameters: "model",

  decode(payload: CallPayload, model: ServedModel): PayloadRequest {
    const batches = model.view.config.maxBatchSize > 0;
    const { contentType, accept, headers } = payload;
    const attributes = headers[attributesHeader];
    const parameters = new Map<string, ParameterValue>();
    if (contentType !== "") parameters.set(headParameters.contentType, contentType);
    if (accept !== "") parameters.set(headParameters.accept, accept);
    if (typeof attributes === "string") parameters.set(headParameters.attributes, attributes);
    const session = headers[sessionHeader];
    if (typeof session === "string") parameters.set(headParameters.session, session);
    if (payload.callKind === "execution-parameters")
      parameters.set(callKindParameter.name, callKindParameter.executionParameters);
    return { inputs: [{ ...payload.tensor, name: bodyInput, shape: batches ? [1, 1] : [1] }], parameters };
  },

  encode(response: InferenceResponse): PayloadReply {
    const { outputs, parameters } = response;
    const status = Number(parameters.get(statusParameter) ?? 200n);
    const contentType = parameters.get(headParameters.contentType);
    const headers = parameters.get(headersParameter);
    return {
      // A status outside this range is an error of the script.
      status: Number.isInteger(status) && status >= 200 && status <= 599 ? status : 500,
      contentType: typeof contentType === "string" ? contentType : "",
      ...(typeof headers === "string" ? { headers: responseHeaders(headers) } : {}),
      body: onlyElement(outputs),
    };
  },

  failed(error: InferenceError): PayloadReply {
    const status = error.code === "UNAVAILABLE" ? 503 : error.code === "NOT_FOUND" ? 404 : 500;
    return { status, contentType: "text/plain", body: Buffer.from(error.message) };
  },
};

function onlyElement(outputs: readonly Tensor[]): Uint8Array {
  const [output] = outputs;
  assert(output !== undefined && output.data.length >= lengthBytes, "a script's model responds with one element");
  return output.data.subarray(lengthBytes);
}
