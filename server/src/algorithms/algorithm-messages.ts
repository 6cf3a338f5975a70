import type { InferenceCode } from "../base/index.ts";
import type { AlgorithmSource } from "./algorithm-models.ts";
import type { AlgorithmAnswer, AlgorithmRequest } from "./payloads/algorithm-request.ts";

/** What the thread of algorithms is told; each order has one reply. */
export type AlgorithmOrder =
  | { readonly kind: "load"; readonly id: number; readonly model: number; readonly source: AlgorithmSource }
  | { readonly kind: "answer"; readonly id: number; readonly model: number; readonly request: AlgorithmRequest }
  | { readonly kind: "unload"; readonly id: number; readonly model: number };

export type AlgorithmReply =
  | { readonly id: number; readonly outcome: "loaded"; readonly memoryBytes: number }
  | { readonly id: number; readonly outcome: "answered"; readonly answer: AlgorithmAnswer }
  | { readonly id: number; readonly outcome: "unloaded" }
  | { readonly id: number; readonly outcome: "failed"; readonly code: InferenceCode; readonly message: string };
