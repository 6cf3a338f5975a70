import { join } from "node:path";

export interface ClientEnvironmentOptions {
  /** `http://127.0.0.1:8770` */
  readonly url: string;
  readonly region: string;
  /** An access key of twelve digits names its account. */
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Where the files lie that the variables name. */
  readonly directory: string;
  /** Of the platform's TLS side; null leaves out what needs it (the SageMaker SDK's account, role and bucket helpers). */
  readonly certificatePem: string | null;
}

export interface ClientEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  /** To be written before the variables are used. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
}

/**
 * What boto3, the AWS CLI and the SageMaker SDK have to find so that they talk to this platform with code unchanged.
 *
 * The SageMaker SDK builds the address of STS itself, always with https and past AWS_ENDPOINT_URL and AWS_DATA_PATH. Its call leaves
 * through HTTPS_PROXY, which is this platform: it answers the STS hosts itself, under a certificate that AWS_CA_BUNDLE trusts, and
 * passes every other host on.
 */
export function clientEnvironment(options: ClientEnvironmentOptions): ClientEnvironment {
  const { url, region, directory, certificatePem } = options;
  const variables: Record<string, string> = {
    AWS_ENDPOINT_URL: url,
    AWS_DEFAULT_REGION: region,
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: options.accessKeyId,
    AWS_SECRET_ACCESS_KEY: options.secretAccessKey,
    // Saves the delay of asking an instance's metadata address that is not there.
    AWS_EC2_METADATA_DISABLED: "true",
    SAGEMAKER_SUPPRESS_V2_WARNING: "1",
    SAGEMAKER_USER_CONFIG_OVERRIDE: join(directory, "sagemaker.yaml"),
  };
  const files = [{ path: join(directory, "sagemaker.yaml"), text: sdkConfiguration() }];
  if (certificatePem !== null) {
    const certificate = join(directory, "certificate.pem");
    variables.AWS_CA_BUNDLE = certificate;
    const local = [...new Set(["127.0.0.1", "localhost", new URL(url).hostname])].join(",");
    // Clients differ in which spelling wins when a shell has both.
    variables.HTTPS_PROXY = variables.https_proxy = url;
    variables.NO_PROXY = variables.no_proxy = local;
    files.push({ path: certificate, text: certificatePem });
  }
  return { variables, files };
}

/** Usage pings would go to the managed service, which this environment has nothing to do with. */
function sdkConfiguration(): string {
  return ["SchemaVersion: '1.0'", "SageMaker:", "  PythonSDK:", "    Modules:", "      TelemetryOptOut: true", ""].join(
    "\n",
  );
}
