import type { ArchivedModel, ContainerKind, KindStart, OpenedContainer } from "../container-kind.ts";
import { bodyInput, bodyOutput, scriptCodec } from "./script-codec.ts";

export interface ScriptContainerOptions {
  /** The python-based backend that runs scripts with the framework's own defaults. */
  readonly runner: string;
}

export function scriptContainer(options: ScriptContainerOptions): ContainerKind {
  return { open: (start) => openScriptContainer(options, start) };
}

function openScriptContainer({ runner }: ScriptContainerOptions, _start: KindStart): OpenedContainer {
  return {
    codec: scriptCodec,
    readPaths: [],
    notes: [],
    modelsIn: (directory) => {
      const model: ArchivedModel = {
        name: "model",
        directory,
        config: {
          backend: runner,
          input: [{ name: bodyInput, data_type: "TYPE_STRING", dims: [1] }],
          output: [{ name: bodyOutput, data_type: "TYPE_STRING", dims: [1] }],
        },
      };
      return Promise.resolve([model]);
    },
  };
}
