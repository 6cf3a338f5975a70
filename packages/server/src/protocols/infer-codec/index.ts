/**
 * Decodes and encodes the KServe v2 inference body, JSON and binary, for protocols over HTTP. The JSON header is read without converting it
 * to objects. Numbers are written directly to tensor memory; binary data is copied once from the socket, or not at all. Error texts are
 * those of tritonserver 2.51.
 */
export { classify } from "./classification.ts";
export { leadingInteger } from "./header-length.ts";
export {
  parseInferHeader,
  estimateParsedBytes,
  rejectHalfFloats,
  type InferHeader,
  type InputHeader,
} from "./infer-header.ts";
export {
  jsonTextBytesMax,
  printParameter,
  ResponseEncoder,
  type EncodeOptions,
  type EncodedResponse,
} from "./infer-response.ts";
export {
  booleanAt,
  countVisited,
  eachMember,
  missingMemberError,
  parsingRequestJson,
  stringAt,
  memberError,
} from "./json-access.ts";
export { runInChunks, printInChunks, scanInChunks, wholeTextBytesMax } from "./in-chunks.ts";
export {
  placeInputs,
  placeInputsInChunks,
  viewTail,
  type InputPlacementOptions,
  type PlacedInputs,
} from "./place-inputs.ts";
export { readCustomParameter } from "./request-parameters.ts";
export { placeRawInput } from "./raw-request.ts";
