import manifest from "../../package.json" with { type: "json" };

/** The version in the server's own metadata and logs. */
export const serverVersion: string = manifest.version;
