/**
 * Returns the STS hosts that SDKs know. The platform's certificate is valid for them, and its CONNECT proxy serves
 * them.
 */
export function stsHostNames(): readonly string[] {
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
