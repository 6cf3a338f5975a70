import type { RestrictedApi, Restriction, Restrictions } from "@galatea/server/protocols";
import { UsageError } from "./flag.ts";

const restrictedApis: Readonly<Record<RestrictedApi, true>> = {
  health: true,
  metadata: true,
  inference: true,
  "shared-memory": true,
  "model-config": true,
  "model-repository": true,
  statistics: true,
  trace: true,
  logging: true,
};

/**
 * Parses `<api>[,<api>...]:<key>=<value>` for each occurrence of the flag. Throws UsageError for an unknown API and for
 * an API that occurs twice.
 */
export function parseRestrictions(flag: string, texts: readonly string[], headerPrefix: string): Restrictions {
  const restrictions = new Map<RestrictedApi, Restriction>();
  for (const text of texts) {
    const match = /^([^:]*):([^=]+)=(.*)$/s.exec(text);
    if (match === null)
      throw new UsageError(`--${flag} option format is '<api>[,<api>...]:<key>=<value>'. Got ${text}`);
    const [, apis = "", key = "", value = ""] = match;
    for (const name of apis.split(",")) {
      const api = name.trim() as RestrictedApi;
      if (!Object.hasOwn(restrictedApis, api))
        throw new UsageError(
          `unknown restricted api '${api}' found; the apis are ${Object.keys(restrictedApis).join(", ")}`,
        );
      if (restrictions.has(api))
        throw new UsageError(`restricted api '${api}' can not be specified in multiple config groups`);
      restrictions.set(api, { header: `${headerPrefix}${key.trim()}`, value: value.trim() });
    }
  }
  return restrictions;
}
