import { availableParallelism } from "node:os";
import type { PayloadCodec } from "../../protocols/index.ts";
import {
  ContainerRefusal,
  type ArchivedModel,
  type ContainerKind,
  type KindStart,
  type OpenedContainer,
} from "../container-kind.ts";
import { bodyInput, bodyOutput, scriptCodec } from "../scripts/script-codec.ts";

export interface AlgorithmContainerOptions {
  readonly backend: string;
  /** Variables of the container that its models are told. */
  readonly variables: readonly string[];
  /** What a transform job that leaves it open is told; null for nothing. */
  readonly execution: { readonly strategy: "MULTI_RECORD" | "SINGLE_RECORD"; readonly payloadMegabytes: number } | null;
}

/** Framework containers of the same image have it. */
const scriptVariable = "SAGEMAKER_PROGRAM";
const acceptVariable = "SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT";

export function algorithmContainer(options: AlgorithmContainerOptions): ContainerKind {
  return { open: (start) => openAlgorithmContainer(options, start) };
}

function openAlgorithmContainer(options: AlgorithmContainerOptions, { environment }: KindStart): OpenedContainer {
  const { backend, variables } = options;
  if ((environment[scriptVariable] ?? "") !== "") {
    throw new ContainerRefusal(
      `${scriptVariable}=${environment[scriptVariable]}: this container runs no scripts, only models of its algorithm. A ` +
        "script runs in the containers of scikit-learn, XGBoost and PyTorch, or as a Python model of Triton's.",
    );
  }
  const parameters = Object.fromEntries(
    variables.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return {
    codec: algorithmCodec(options, environment[acceptVariable] ?? ""),
    readPaths: [],
    opensPort: false,
    callMsMax: null,
    bodyBytesMax: null,
    notes: [],
    modelsIn: (directory) => {
      const model: ArchivedModel = {
        name: "model",
        directory,
        config: {
          backend,
          input: [{ name: bodyInput, data_type: "TYPE_STRING", dims: [1] }],
          output: [{ name: bodyOutput, data_type: "TYPE_STRING", dims: [1] }],
          parameters: Object.fromEntries(
            Object.entries(parameters).map(([name, value]) => [name, { string_value: value }]),
          ),
        },
      };
      return Promise.resolve([model]);
    },
  };
}

/** Where a client leaves the type of its answer open, the container's variable says it. */
function algorithmCodec({ execution }: AlgorithmContainerOptions, acceptOtherwise: string): PayloadCodec {
  return {
    ...scriptCodec,
    decode: (payload, model) => {
      const isOpen = payload.accept.trim() === "" || payload.accept.trim() === "*/*";
      return scriptCodec.decode(isOpen ? { ...payload, accept: acceptOtherwise } : payload, model);
    },
    executionParameters:
      execution === null
        ? null
        : {
            status: 200,
            contentType: "application/json",
            body: JSON.stringify({
              MaxConcurrentTransforms: availableParallelism(),
              BatchStrategy: execution.strategy,
              MaxPayloadInMB: execution.payloadMegabytes,
            }),
          },
  };
}
