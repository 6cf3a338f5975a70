import { toText } from "@bufbuild/protobuf/txtpb";
import { ModelConfigSchema, type ModelConfigMessage } from "./message.ts";
import type { ModelConfig } from "./model-config.ts";

/** A configuration as config.pbtxt: what `parseConfigText` reads back to the same message. */
export function printConfigText(config: ModelConfig): string {
  return messageToText(config.message);
}

export function messageToText(message: ModelConfigMessage): string {
  return toText(ModelConfigSchema, message);
}
