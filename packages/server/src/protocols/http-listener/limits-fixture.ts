import { defaultHttpLimits, type HttpLimits } from "./limits.ts";

export const usualHttpLimits: HttpLimits = { ...defaultHttpLimits, inputBytesMax: 64 * 2 ** 20 };
