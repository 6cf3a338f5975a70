/** Program of the thread that converts models: one order after the other, each with one reply. */
import { parentPort } from "node:worker_threads";
import { type InferenceCode, InferenceError } from "../../base/index.ts";
import { type ConversionOrder, convertModel } from "./convert-model.ts";

export type ConversionReply =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: InferenceCode; readonly message: string };

parentPort?.on("message", (order: ConversionOrder) => {
  const reply = (what: ConversionReply) => parentPort?.postMessage(what, []);
  convertModel(order).then(
    () => reply({ ok: true }),
    (error: unknown) => {
      const { code, message } = InferenceError.from(error);
      reply({ ok: false, code, message });
    },
  );
});
