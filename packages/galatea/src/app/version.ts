import manifest from "../../package.json" with { type: "json" };

/** The version in the server's metadata and logs. */
export const serverVersion: string = manifest.version;
