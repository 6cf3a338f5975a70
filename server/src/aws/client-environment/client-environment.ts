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
 * The SageMaker SDK builds the address of STS itself, out of botocore's endpoint table and always with https, past AWS_ENDPOINT_URL.
 * AWS_DATA_PATH puts a table in front of botocore's whose STS is this platform, and AWS_CA_BUNDLE trusts its certificate.
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
    variables.AWS_DATA_PATH = join(directory, "models");
    files.push({ path: certificate, text: certificatePem });
    files.push({ path: join(directory, "models", "endpoints.json"), text: endpointTable(new URL(url).host) });
  }
  return { variables, files };
}

/** Usage pings would go to the managed service, which this environment has nothing to do with. */
function sdkConfiguration(): string {
  return ["SchemaVersion: '1.0'", "SageMaker:", "  PythonSDK:", "    Modules:", "      TelemetryOptOut: true", ""].join(
    "\n",
  );
}

/**
 * botocore's table in its own form: the hosts of the managed service for everything (clients made with AWS_ENDPOINT_URL never use
 * them), and this platform for STS in every region.
 */
function endpointTable(host: string): string {
  const partitions = [
    ["aws", "amazonaws.com", "^(us|eu|ap|sa|ca|me|af|il|mx)\\-\\w+\\-\\d+$", awsRegions],
    ["aws-cn", "amazonaws.com.cn", "^cn\\-\\w+\\-\\d+$", ["cn-north-1", "cn-northwest-1"]],
  ] as const;
  return JSON.stringify({
    version: 3,
    partitions: partitions.map(([partition, dnsSuffix, regionRegex, regions]) => ({
      partition,
      partitionName: partition,
      dnsSuffix,
      regionRegex,
      defaults: { hostname: "{service}.{region}.{dnsSuffix}", protocols: ["https"], signatureVersions: ["v4"] },
      regions: Object.fromEntries(regions.map((region) => [region, { description: region }])),
      services: Object.fromEntries(
        ["s3", "sts", "sagemaker", "runtime.sagemaker", "monitoring", "logs"].map((service) => [
          service,
          {
            ...(service === "sts" ? { defaults: { hostname: host } } : {}),
            endpoints: Object.fromEntries(regions.map((region) => [region, {}])),
          },
        ]),
      ),
    })),
  });
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
