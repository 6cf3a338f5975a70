import { availableParallelism } from "node:os";
import type { PayloadCodec } from "@galatea/server/protocols";
import {
  ContainerRefusal,
  type ArchivedModel,
  type ContainerKind,
  type KindStart,
  type OpenedContainer,
} from "../container-kind.ts";
import { bodyInput, bodyOutput, scriptCodec } from "../scripts/script-codec.ts";
import type { ExecutionText } from "./execution-parameters.ts";

export interface AlgorithmContainerOptions {
  readonly backend: string;
  /** Environment variables of the container that are passed to its models as parameters. */
  readonly variables: readonly string[];
  /** Returns the body of GET /execution-parameters; null if the container has none. */
  readonly execution: ExecutionText | null;
  /** Returns the maximum length of a request body, in bytes; null for the server's limit. */
  readonly bodyBytesMax?: (start: KindStart) => number | null;
}

/** Variable that selects script mode, in which another container kind serves the image. */
const scriptVariable = "SAGEMAKER_PROGRAM";
const acceptVariable = "SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT";

export function algorithmContainer(options: AlgorithmContainerOptions): ContainerKind {
  return { open: (start) => openAlgorithmContainer(options, start) };
}

function openAlgorithmContainer(options: AlgorithmContainerOptions, start: KindStart): OpenedContainer {
  const { backend, variables, execution, bodyBytesMax } = options;
  const { environment } = start;
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
    codec: algorithmCodec(
      execution === null ? null : execution(start, availableParallelism()),
      environment[acceptVariable] ?? "",
    ),
    readPaths: [],
    opensPort: false,
    callMsMax: null,
    bodyBytesMax: bodyBytesMax?.(start) ?? null,
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

/** Returns a codec that uses `acceptOtherwise` as the type of the response if the client accepts any type. */
function algorithmCodec(executionText: string | null, acceptOtherwise: string): PayloadCodec {
  return {
    ...scriptCodec,
    decode: (payload, model) => {
      const isOpen = payload.accept.trim() === "" || payload.accept.trim() === "*/*";
      return scriptCodec.decode(isOpen ? { ...payload, accept: acceptOtherwise } : payload, model);
    },
    executionParameters:
      executionText === null ? null : { status: 200, contentType: "application/json", body: executionText },
  };
}
