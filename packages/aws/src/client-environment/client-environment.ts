import { join } from "node:path";
import { earlierProxy, proxyUrl } from "./proxy-access.ts";

export interface ClientEnvironmentOptions {
  /** `http://127.0.0.1:8770` */
  readonly url: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Where the files lie that the variables name. */
  readonly directory: string;
  /** What clients need to be answered on the hosts that they build themselves; null: left out. */
  readonly proxy: ClientProxy | null;
  /** The environment of the shell that is to have the variables. */
  readonly shell: Readonly<Record<string, string | undefined>>;
}

export interface ClientProxy {
  /** Of the platform's TLS side. */
  readonly certificatePem: string;
  /** The authorities that the shell's clients trust besides. */
  readonly authoritiesPem: string;
}

export interface ClientEnvironment {
  /** Null: to be unset. */
  readonly variables: Readonly<Record<string, string | null>>;
  /** To be written before the variables are used. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
}

/** With these a client would sign as somebody else than with the key beside them. */
const otherIdentities = ["AWS_SESSION_TOKEN", "AWS_PROFILE"];

/**
 * What boto3, the AWS CLI and the SageMaker SDK have to find so that they talk to this platform with code unchanged.
 *
 * The SageMaker SDK builds the address of STS itself, always with https and past AWS_ENDPOINT_URL and AWS_DATA_PATH. With `proxy`
 * its call leaves through HTTPS_PROXY, which is this platform: it answers the STS hosts itself, under a certificate that AWS_CA_BUNDLE
 * trusts, and passes every other host on, through the proxy that the shell had before. Every program of the shell goes that way,
 * so that it is asked for apart.
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
    // Saves the delay of asking an instance's metadata address that is not there.
    AWS_EC2_METADATA_DISABLED: "true",
    // For operations of hosts of their own (logs.StartLiveTail) clients would put a prefix before the platform's host name.
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
    const before = earlierProxy(shell.HTTPS_PROXY ?? shell.https_proxy, url);
    // Clients differ in which spelling wins when a shell has both.
    variables.HTTPS_PROXY = variables.https_proxy = proxyUrl(url, options.secretAccessKey, before);
    variables.NO_PROXY = variables.no_proxy = local;
    files.push({ path: certificate, text: `${proxy.certificatePem}${proxy.authoritiesPem}` });
  }
  return { variables, files };
}

/** Usage pings would go to the managed service, which this environment has nothing to do with. */
function sdkConfiguration(): string {
  return ["SchemaVersion: '1.0'", "SageMaker:", "  PythonSDK:", "    Modules:", "      TelemetryOptOut: true", ""].join(
    "\n",
  );
}
