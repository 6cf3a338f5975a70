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
    variables.HTTPS_PROXY = url;
    variables.NO_PROXY = `127.0.0.1,localhost,${new URL(url).hostname}`;
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

/** The hosts of STS that SDKs know: what the certificate is for and what the platform answers itself behind CONNECT. */
export function stsHosts(): readonly string[] {
  const regional = awsRegions.map((region) => `sts.${region}.amazonaws.com`);
  const china = ["cn-north-1", "cn-northwest-1"].map((region) => `sts.${region}.amazonaws.com.cn`);
  return ["sts.amazonaws.com", ...regional, ...china];
}

const awsRegions = [
  "af-south-1",
  "ap-east-1",
  "ap-northeast-1",
  "ap-northeast-2",
  "ap-northeast-3",
  "ap-south-1",
  "ap-southeast-1",
  "ap-southeast-2",
  "ca-central-1",
  "eu-central-1",
  "eu-north-1",
  "eu-south-1",
  "eu-west-1",
  "eu-west-2",
  "eu-west-3",
  "il-central-1",
  "me-south-1",
  "sa-east-1",
  "us-east-1",
  "us-east-2",
  "us-west-1",
  "us-west-2",
] as const;
