import type { Constant, ExternalBytes, OnnxModel } from "./onnx-writer.ts";
import type { OnnxChunk } from "./chunks.ts";

/** External constants are aligned to pages, so that ONNX Runtime can map them to memory. */
const pageBytes = 4096;
/** Constants with fewer bytes stay in the model file, because programs that read the model expect the constants of shapes there. */
const externalBytesMin = 1024;

/** A model whose large constants are in a separate file next to it, and the content of that file. */
export interface SplitModel {
  readonly model: OnnxModel;
  readonly pieces: readonly OnnxChunk[];
  readonly byteLength: number;
}

/** Moves the large constants of the graph to a separate file `location`. Constants inside loops and branches stay in the model. */
export function splitModel(model: OnnxModel, location: string): SplitModel {
  const chunks: OnnxChunk[] = [];
  let byteLength = 0;
  const constants = model.constants.map((constant): Constant => {
    const { bytes } = constant;
    if ("location" in bytes || bytes.byteLength < externalBytesMin) return constant;
    const gap = (pageBytes - (byteLength % pageBytes)) % pageBytes;
    if (gap > 0) chunks.push(new Uint8Array(gap));
    const path: ExternalBytes = { location, offset: byteLength + gap, byteLength: bytes.byteLength };
    chunks.push(bytes);
    byteLength = path.offset + path.byteLength;
    return { ...constant, bytes: path };
  });
  return { model: { ...model, constants }, pieces: chunks, byteLength };
}
