"""Real boto3 against the gateway at argv[1]. Prints one JSON line per check; argv[2] is a folder for files."""

import base64
import concurrent.futures
import hashlib
import os
import threading
import time
import urllib.error
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from checks import MIB, URL, check, client, got, path, put, refused, run, s3


@check
def create_bucket_once():
    s3.create_bucket(Bucket="bkt")
    refused("BucketAlreadyOwnedByYou", lambda: s3.create_bucket(Bucket="bkt"), 409)


@check
def create_bucket_with_location():
    s3.create_bucket(Bucket="elsewhere", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.delete_bucket(Bucket="elsewhere")


@check
def list_buckets():
    (bucket,) = s3.list_buckets()["Buckets"]
    assert bucket["Name"] == "bkt" and abs(bucket["CreationDate"].timestamp() - time.time()) < 60


@check
def head_bucket():
    s3.head_bucket(Bucket="bkt", ExpectedBucketOwner="111122223333")
    refused("403", lambda: s3.head_bucket(Bucket="bkt", ExpectedBucketOwner="999988887777"))
    assert refused("404", lambda: s3.head_bucket(Bucket="none"))["Error"]["Message"] == "Not Found"


@check
def bucket_location_and_versioning():
    assert s3.get_bucket_location(Bucket="bkt")["LocationConstraint"] is None
    assert "Status" not in s3.get_bucket_versioning(Bucket="bkt")


@check
def put_get_roundtrip():
    head = put("a/b c+%é\u1f600.txt", b"hello", ContentType="text/x", Metadata={"a": "b"}, CacheControl="no-store")
    assert head["ETag"] == '"5d41402abc4b2a76b9719d911017c592"' and head["ChecksumCRC32"] == "NhCmhg=="
    reply = s3.get_object(Bucket="bkt", Key="a/b c+%é\u1f600.txt")
    assert reply["Body"].read() == b"hello" and reply["ContentType"] == "text/x"
    assert (
        reply["Metadata"] == {"a": "b"} and reply["CacheControl"] == "no-store" and reply["ChecksumCRC32"] == "NhCmhg=="
    )


@check
def empty_object():
    put("empty", b"")
    assert got("empty") == b"" and s3.head_object(Bucket="bkt", Key="empty")["ContentLength"] == 0


@check
def hostile_keys():
    for key in ["../../x", "a//b", "/lead", "trail/", ".", "a&b<c>'\"", "x" * 1024]:
        put("keys/" + key if len(key) < 1000 else key, key.encode())
        assert got("keys/" + key if len(key) < 1000 else key) == key.encode(), key


@check
def key_too_long():
    refused("KeyTooLongError", lambda: put("x" * 1025))


@check
def missing_key():
    assert refused("NoSuchKey", lambda: got("none"), 404)["Error"]["Message"] == "The specified key does not exist."
    refused("404", lambda: s3.head_object(Bucket="bkt", Key="none"))


@check
def missing_bucket():
    refused("NoSuchBucket", lambda: s3.put_object(Bucket="none", Key="k", Body=b"x" * 100_000), 404)
    refused("NoSuchBucket", lambda: s3.list_objects_v2(Bucket="none"), 404)


@check
def delete_is_idempotent():
    put("gone")
    assert s3.delete_object(Bucket="bkt", Key="gone")["ResponseMetadata"]["HTTPStatusCode"] == 204
    s3.delete_object(Bucket="bkt", Key="gone")
    refused("NoSuchKey", lambda: got("gone"))


@check
def ranges():
    put("r", bytes(range(100)))
    for header, want in [
        ("bytes=0-0", [0]),
        ("bytes=90-", range(90, 100)),
        ("bytes=-3", [97, 98, 99]),
        ("bytes=95-900", range(95, 100)),
    ]:
        reply = s3.get_object(Bucket="bkt", Key="r", Range=header)
        assert reply["Body"].read() == bytes(want) and reply["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert s3.get_object(Bucket="bkt", Key="r", Range="bytes=0-9")["ContentRange"] == "bytes 0-9/100"


@check
def range_not_satisfiable():
    refused("InvalidRange", lambda: got("r", Range="bytes=100-"), 416)


@check
def several_ranges_give_everything():
    assert got("r", Range="bytes=0-1,5-6") == bytes(range(100))


@check
def if_match():
    tag = s3.head_object(Bucket="bkt", Key="r")["ETag"]
    assert got("r", IfMatch=tag)
    refused("PreconditionFailed", lambda: got("r", IfMatch='"0"'), 412)
    refused("304", lambda: got("r", IfNoneMatch=tag), 304)


@check
def if_modified():
    head = s3.head_object(Bucket="bkt", Key="r")
    refused("304", lambda: got("r", IfModifiedSince=head["LastModified"]))
    refused("PreconditionFailed", lambda: got("r", IfUnmodifiedSince="2001-01-01T00:00:00Z"))


@check
def put_if_none_match():
    put("once", b"1", IfNoneMatch="*")
    refused("PreconditionFailed", lambda: put("once", b"2", IfNoneMatch="*"), 412)
    assert got("once") == b"1"


@check
def put_if_match():
    tag = put("cas", b"1")["ETag"]
    put("cas", b"2", IfMatch=tag)
    refused("PreconditionFailed", lambda: put("cas", b"3", IfMatch=tag), 412)


@check
def every_checksum():
    for name in ["CRC32", "SHA1", "SHA256"]:
        head = put("sum", b"hello", ChecksumAlgorithm=name)
        assert (
            s3.head_object(Bucket="bkt", Key="sum", ChecksumMode="ENABLED")["Checksum" + name]
            == head["Checksum" + name]
        )
    for name, value in [("CRC32C", "mnG7TA=="), ("CRC64NVME", "M3eFcAZSQlc=")]:
        assert put("sum", b"hello", **{"Checksum" + name: value})["Checksum" + name] == value


@check
def wrong_checksum():
    for name in ["CRC32", "CRC32C"]:
        refused("BadDigest", lambda: put("bad", b"hello", **{"Checksum" + name: "AAAAAA=="}), 400)
    refused("BadDigest", lambda: put("bad", b"z" * 3 * MIB, ChecksumCRC32="AAAAAA=="), 400)
    refused("NoSuchKey", lambda: got("bad"))


@check
def content_md5():
    put("md5", b"hello", ContentMD5=base64.b64encode(hashlib.md5(b"hello").digest()).decode())
    refused("BadDigest", lambda: put("md5", b"hello", ContentMD5=base64.b64encode(hashlib.md5(b"x").digest()).decode()))
    refused("InvalidDigest", lambda: put("md5", b"hello", ContentMD5="nonsense"))


@check
def encryption_is_not_claimed():
    for algorithm in ["AES256", "aws:kms"]:
        assert "ServerSideEncryption" not in put("kms", ServerSideEncryption=algorithm)
        assert "ServerSideEncryption" not in s3.head_object(Bucket="bkt", Key="kms")


@check
def tags():
    put("tagged", Tagging="a=1&b=2")
    assert s3.get_object_tagging(Bucket="bkt", Key="tagged")["TagSet"] == [
        {"Key": "a", "Value": "1"},
        {"Key": "b", "Value": "2"},
    ]


@check
def metadata_too_large():
    refused("MetadataTooLarge", lambda: put("meta", Metadata={"a": "x" * 3000}))


@check
def response_overrides():
    assert s3.get_object(Bucket="bkt", Key="r", ResponseContentType="a/b")["ContentType"] == "a/b"


@check
def list_v2_pages():
    for n in range(25):
        put("list/%02d" % n)
    pages = list(
        s3.get_paginator("list_objects_v2").paginate(Bucket="bkt", Prefix="list/", PaginationConfig={"PageSize": 10})
    )
    assert [len(page["Contents"]) for page in pages] == [10, 10, 5] and pages[0]["KeyCount"] == 10


@check
def list_v2_delimiter_and_start():
    put("d/a/1")
    put("d/a/2")
    put("d/b")
    page = s3.list_objects_v2(Bucket="bkt", Prefix="d/", Delimiter="/")
    assert [p["Prefix"] for p in page["CommonPrefixes"]] == ["d/a/"] and [c["Key"] for c in page["Contents"]] == ["d/b"]
    assert s3.list_objects_v2(Bucket="bkt", Prefix="list/", StartAfter="list/23")["Contents"][0]["Key"] == "list/24"


@check
def list_v1():
    first = s3.list_objects(Bucket="bkt", Prefix="list/", MaxKeys=3)
    assert first["IsTruncated"] and len(first["Contents"]) == 3
    assert s3.list_objects(Bucket="bkt", Prefix="list/", Marker="list/22")["Contents"][0]["Key"] == "list/23"
    keys = [
        o.key
        for o in boto3.resource(
            "s3",
            endpoint_url=URL,
            aws_access_key_id="AKIDEXAMPLE",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )
        .Bucket("bkt")
        .objects.filter(Prefix="d/")
    ]
    assert keys == ["d/a/1", "d/a/2", "d/b"]


@check
def list_encodes_keys():
    put("enc/ +%&<é\n")
    assert s3.list_objects_v2(Bucket="bkt", Prefix="enc/")["Contents"][0]["Key"] == "enc/ +%&<é\n"


@check
def delete_objects():
    reply = s3.delete_objects(
        Bucket="bkt", Delete={"Objects": [{"Key": "list/%02d" % n} for n in range(25)] + [{"Key": "none"}]}
    )
    assert len(reply["Deleted"]) == 26 and s3.list_objects_v2(Bucket="bkt", Prefix="list/")["KeyCount"] == 0
    assert "Deleted" not in s3.delete_objects(Bucket="bkt", Delete={"Quiet": True, "Objects": [{"Key": "none"}]})


@check
def copy_object():
    put("src é", b"copied", Metadata={"a": "b"}, ContentType="t/x")
    s3.copy_object(Bucket="bkt", Key="dst", CopySource={"Bucket": "bkt", "Key": "src é"})
    reply = s3.get_object(Bucket="bkt", Key="dst")
    assert reply["Body"].read() == b"copied" and reply["Metadata"] == {"a": "b"} and reply["ContentType"] == "t/x"
    s3.copy_object(Bucket="bkt", Key="dst", CopySource="bkt/dst", MetadataDirective="REPLACE", Metadata={"c": "d"})
    assert s3.head_object(Bucket="bkt", Key="dst")["Metadata"] == {"c": "d"}
    refused("InvalidRequest", lambda: s3.copy_object(Bucket="bkt", Key="dst", CopySource="bkt/dst"))
    refused("NoSuchKey", lambda: s3.copy_object(Bucket="bkt", Key="dst", CopySource="bkt/none"))
    refused(
        "PreconditionFailed",
        lambda: s3.copy_object(Bucket="bkt", Key="dst", CopySource="bkt/src é", CopySourceIfMatch='"0"'),
    )


@check
def upload_and_download_150_mb():
    block = os.urandom(MIB)
    with open(path("big"), "wb") as file:
        for n in range(150):
            file.write(n.to_bytes(4, "big") + block[4:])
    s3.upload_file(path("big"), "bkt", "big")
    head = s3.head_object(Bucket="bkt", Key="big")
    assert head["ContentLength"] == 150 * MIB and head["ETag"].endswith('-19"')
    s3.download_file("bkt", "big", path("back"))
    with open(path("big"), "rb") as one, open(path("back"), "rb") as two:
        assert hashlib.file_digest(one, "sha256").digest() == hashlib.file_digest(two, "sha256").digest()


@check
def put_100_mb_in_one_request():
    s3.upload_file(path("big"), "bkt", "one", Config=TransferConfig(multipart_threshold=2**40))
    assert s3.head_object(Bucket="bkt", Key="one")["ContentLength"] == 150 * MIB


@check
def managed_copy_uses_part_copies():
    s3.copy({"Bucket": "bkt", "Key": "big"}, "bkt", "big copy", Config=TransferConfig(multipart_chunksize=64 * MIB))
    assert s3.head_object(Bucket="bkt", Key="big copy")["ContentLength"] == 150 * MIB
    assert got("big copy", Range="bytes=104857600-104857603") == (100).to_bytes(4, "big")


@check
def parts_out_of_order():
    up = s3.create_multipart_upload(Bucket="bkt", Key="ooo")["UploadId"]
    bodies = {3: b"c" * 10, 1: b"a" * 5 * MIB, 2: b"b" * 5 * MIB}
    tags = {
        n: s3.upload_part(Bucket="bkt", Key="ooo", UploadId=up, PartNumber=n, Body=body)["ETag"]
        for n, body in bodies.items()
    }
    listed = s3.list_parts(Bucket="bkt", Key="ooo", UploadId=up)["Parts"]
    assert [p["PartNumber"] for p in listed] == [1, 2, 3]
    assert s3.list_multipart_uploads(Bucket="bkt")["Uploads"][0]["UploadId"] == up
    done = lambda order: s3.complete_multipart_upload(
        Bucket="bkt",
        Key="ooo",
        UploadId=up,
        MultipartUpload={"Parts": [{"PartNumber": n, "ETag": tags[n]} for n in order]},
    )
    refused("InvalidPartOrder", lambda: done([2, 1, 3]))
    done([1, 2, 3])
    assert got("ooo") == bodies[1] + bodies[2] + bodies[3]
    assert done([1, 2, 3])["ETag"].endswith('-3"')


@check
def multipart_refusals():
    up = s3.create_multipart_upload(Bucket="bkt", Key="no")["UploadId"]
    tags = [s3.upload_part(Bucket="bkt", Key="no", UploadId=up, PartNumber=n, Body=b"x")["ETag"] for n in (1, 2)]
    parts = [{"PartNumber": n + 1, "ETag": tag} for n, tag in enumerate(tags)]
    done = lambda parts: s3.complete_multipart_upload(
        Bucket="bkt", Key="no", UploadId=up, MultipartUpload={"Parts": parts}
    )
    refused("EntityTooSmall", lambda: done(parts))
    refused("InvalidPart", lambda: done([{"PartNumber": 1, "ETag": '"0"'}]))
    s3.abort_multipart_upload(Bucket="bkt", Key="no", UploadId=up)
    refused("NoSuchUpload", lambda: done(parts), 404)


@check
def full_object_multipart_checksum():
    up = s3.create_multipart_upload(Bucket="bkt", Key="full", ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT")[
        "UploadId"
    ]
    part = s3.upload_part(Bucket="bkt", Key="full", UploadId=up, PartNumber=1, Body=b"hello", ChecksumAlgorithm="CRC32")
    done = s3.complete_multipart_upload(
        Bucket="bkt", Key="full", UploadId=up, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    )
    assert done["ChecksumCRC32"] == "NhCmhg==" and got("full") == b"hello"


@check
def presigned_v2_and_v4():
    for version in ("s3", "s3v4"):
        signer = client(signature_version=version)
        url = signer.generate_presigned_url("get_object", Params={"Bucket": "bkt", "Key": "src é"})
        assert urllib.request.urlopen(url).read() == b"copied"
        to = signer.generate_presigned_url("put_object", Params={"Bucket": "bkt", "Key": "signed"})
        urllib.request.urlopen(
            urllib.request.Request(to, data=version.encode(), method="PUT", headers={"Content-Type": ""})
        )
        assert got("signed") == version.encode()
        try:
            urllib.request.urlopen(url.replace("src", "dst"))
            raise AssertionError("tampered URL passed")
        except urllib.error.HTTPError as error:
            assert error.code == 403 and b"SignatureDoesNotMatch" in error.read()


@check
def wrong_secret():
    refused("SignatureDoesNotMatch", lambda: client("wrong").list_buckets(), 403)
    refused("SignatureDoesNotMatch", lambda: client("wrong").put_object(Bucket="bkt", Key="k", Body=b"x"), 403)


@check
def unsigned_is_denied():
    try:
        urllib.request.urlopen(URL + "/bkt/r")
        raise AssertionError("unsigned passed")
    except urllib.error.HTTPError as error:
        assert error.code == 403 and b"AccessDenied" in error.read()


@check
def concurrent_writers_one_wins():
    bodies = [bytes([n]) * 2 * MIB for n in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: put("race", body), bodies))
    assert got("race") in bodies


@check
def readers_during_overwrites_see_whole_objects():
    put("flip", b"a" * MIB)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            put("flip", b"b" * MIB)
            put("flip", b"a" * MIB)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(15):
            assert len(set(got("flip"))) == 1
    finally:
        stop.set()
        writer.join()


@check
def delete_bucket_not_empty():
    refused("BucketNotEmpty", lambda: s3.delete_bucket(Bucket="bkt"), 409)


@check
def not_built_is_refused_by_name():
    reply = refused("NotImplemented", lambda: s3.get_bucket_policy(Bucket="bkt"), 501)
    assert "policy" in reply["Error"]["Message"]


run()
