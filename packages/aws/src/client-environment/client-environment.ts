import { join } from "node:path";
import { previousProxy, proxyUrl } from "./proxy-access.ts";

export interface ClientEnvironmentOptions {
  /** URL of the platform, such as `http://127.0.0.1:8770`. */
  readonly url: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Directory for the files whose paths the variables contain. */
  readonly directory: string;
  /** Certificates for HTTPS calls through the platform's proxy; null: clients do not use the proxy. */
  readonly proxy: ClientProxy | null;
  /** The present environment of the shell. */
  readonly shell: Readonly<Record<string, string | undefined>>;
}

export interface ClientProxy {
  /** Certificate of the platform's TLS listener. */
  readonly certificatePem: string;
  /** The other authorities that the shell's clients trust. */
  readonly authoritiesPem: string;
}

export interface ClientEnvironment {
  /** Null: unset the variable. */
  readonly variables: Readonly<Record<string, string | null>>;
  /** Files to write before the variables are used. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
}

/** Variables that would select an identity other than the given key. They are unset. */
const otherIdentities = ["AWS_SESSION_TOKEN", "AWS_PROFILE"];

/**
 * Returns the variables and files with which unchanged code of boto3, the AWS CLI and the SageMaker SDK uses this
 * platform.
 *
 * The SageMaker SDK derives the address of STS itself: always https, whatever AWS_ENDPOINT_URL and AWS_DATA_PATH say.
 * With `proxy`, HTTPS_PROXY sends that call to this platform, which serves the STS hosts itself. AWS_CA_BUNDLE trusts
 * the certificate. The platform tunnels connections to other hosts through the shell's previous proxy. The proxy is
 * optional because every program of the shell then uses it.
 */
export function clientEnvironment(options: ClientEnvironmentOptions): ClientEnvironment {
  const { url, region, directory, proxy, shell } = options;
  const configuration = join(directory, "sagemaker.yaml");
  const variables: Record<string, string | null> = {
    AWS_ENDPOINT_URL: url,
    AWS_DEFAULT_REGION: region,
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: options.accessKeyId,
    AWS_SECRET_ACCESS_KEY: options.secretAccessKey,
    // Prevents a request to the instance metadata address, which does not exist here and would time out.
    AWS_EC2_METADATA_DISABLED: "true",
    // Without this variable, clients call `logs.StartLiveTail` and similar operations on a subdomain of the platform's
    // host, which does not exist.
    AWS_DISABLE_HOST_PREFIX_INJECTION: "true",
    SAGEMAKER_SUPPRESS_V2_WARNING: "1",
    SAGEMAKER_USER_CONFIG_OVERRIDE: configuration,
  };
  for (const name of otherIdentities) if (shell[name] !== undefined) variables[name] = null;
  const files = [{ path: configuration, text: sdkConfiguration() }];
  if (proxy !== null) {
    const certificate = join(directory, "certificate.pem");
    variables.AWS_CA_BUNDLE = certificate;
    const own = ["127.0.0.1", "localhost", new URL(url).hostname];
    const excepted = (shell.NO_PROXY ?? shell.no_proxy ?? "").split(",").map((name) => name.trim());
    const local = [...new Set([...excepted, ...own])].filter((name) => name !== "").join(",");
    const before = previousProxy(shell.HTTPS_PROXY ?? shell.https_proxy, url);
    // Clients differ in which spelling has priority when a shell has both.
    variables.HTTPS_PROXY = variables.https_proxy = proxyUrl(url, options.secretAccessKey, before);
    variables.NO_PROXY = variables.no_proxy = local;
    files.push({ path: certificate, text: `${proxy.certificatePem}${proxy.authoritiesPem}` });
  }
  return { variables, files };
}

/** Disables usage telemetry to the managed service. */
function sdkConfiguration(): string {
  return ["SchemaVersion: '1.0'", "SageMaker:", "  PythonSDK:", "    Modules:", "      TelemetryOptOut: true", ""].join(
    "\n",
  );
}
